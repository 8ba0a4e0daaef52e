// >>cpp
// C++ alone: gn::array is one reference to a gn_array, let go of where its variable ends, with operators. An array that
// could not be made is empty (`if (!a)`), what is made of it too, and the message is in gn_error: nothing throws. It goes
// wherever C's functions take a gn_array *; their results go into one by gn::array y(gn_softmax(x, -1)), out of whichever
// scope is open. What is no new array has an owner already: gn_eval, gn_to and gn_requires_grad are called alone, and what
// is lent, gn_params_get's, goes through gn_retain. Let no gn::array outlive its context.

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../api/context.h"
#include "../api/elementwise_api.h"
#include "../api/reductions.h"
#include "../api/grad.h"
#include "../api/macros.h"
#endif

#ifdef __cplusplus
#include <initializer_list>
namespace gn {

template <class T> struct number; // the numbers of C++, and the dtype of each
#define GNI_NUMBER(T, name)                                                                        \
    template <> struct number<T> {                                                                 \
        typedef T type;                                                                            \
        static gn_dtype dtype() { return name; }                                                   \
    };
GNI_NUMBER(bool, GN_BOOL)
GNI_NUMBER(float, GN_F32)
GNI_NUMBER(double, GN_F64)
GNI_NUMBER(signed char, GN_I8)
GNI_NUMBER(unsigned char, GN_U8)
GNI_NUMBER(short, GN_I16)
GNI_NUMBER(unsigned short, GN_U16)
GNI_NUMBER(int, GN_I32)
GNI_NUMBER(unsigned, GN_U32)
GNI_NUMBER(long, sizeof(long) == 8 ? GN_I64 : GN_I32)
GNI_NUMBER(unsigned long, sizeof(long) == 8 ? GN_U64 : GN_U32)
GNI_NUMBER(long long, GN_I64)
GNI_NUMBER(unsigned long long, GN_U64)
#undef GNI_NUMBER
#define GNI_FOR_NUMBERS template <class S, class = typename number<S>::type>

// gn_open and gn_close; empty where gn_open gave nothing (gn_open_error).
class context {
    gn_context *g_;

  public:
    explicit context(const gn_options *options = nullptr) : g_(gn_open(options)) {}
    context(context &&other) noexcept : g_(other.g_) { other.g_ = nullptr; }
    context(const context &) = delete;
    context &operator=(const context &) = delete;
    ~context() { gn_close(g_); }
    operator gn_context *() const { return g_; }
};

// From here to the end of the block: a scope, for what C's functions make there, and no record for gradients.
#define GNI_GUARD(name, first, last)                                                               \
    class name {                                                                                   \
        gn_context *g_;                                                                            \
                                                                                                   \
      public:                                                                                      \
        explicit name(gn_context *g) : g_(g) { first(g_); }                                        \
        name(const name &) = delete;                                                               \
        name &operator=(const name &) = delete;                                                    \
        ~name() { last(g_); }                                                                      \
    };
GNI_GUARD(scope, gn_scope_begin, gn_scope_end)
GNI_GUARD(no_grad, gn_no_grad_begin, gn_no_grad_end)
#undef GNI_GUARD

class array {
    gn_array *a_;

  public:
    array() : a_(nullptr) {}
    // Takes the reference of an array that one of C's functions made, from its scope or from the caller.
    explicit array(gn_array *made) : a_(nullptr) { gn_set(&a_, made); }
    array(const array &other) : a_(gn_retain(other.a_)) {}
    array(array &&other) noexcept : a_(other.a_) { other.a_ = nullptr; }
    ~array() { gn_release(a_); }
    // gn::array x(g, {1.f, 2.f}), or rows of one length: gn::array x(g, {{1, 2}, {3, 4}}). The dtype is that of the numbers.
    // (Not g: GCC would warn of a program's own g when it makes these.)
    template <class T> array(gn_context *of, std::initializer_list<T> list) : a_(nullptr) {
        gn_set(&a_, gn_array_from(of, number<T>::dtype(), GN_SHAPE(list.size()), list.begin()));
    }
    template <class T> array(gn_context *of, std::initializer_list<std::initializer_list<T>> rows) : a_(nullptr) {
        const size_t length = rows.size() == 0 ? 0 : rows.begin()->size();
        array made(gn_empty(of, number<T>::dtype(), GN_SHAPE(rows.size(), length)));
        int64_t row = 0;
        for (const std::initializer_list<T> &list : rows) {
            if (list.size() != length) { // an error that shows both lengths
                const array first(of, *rows.begin()), other(of, list);
                gn_array *const both[] = {first, other};
                gn_stack(both, 2, 0);
                return;
            }
            gn_write(array(gn_slice(made, 0, row, row + 1, 1)), list.begin(), length * sizeof(T));
            row++;
        }
        gn_set(&a_, gn_retain(made.a_));
    }
    // Of what has size() and data(), as std::vector; and the other way round, 1-d: x.to<std::vector<float>>().
    template <class Numbers, class T = typename Numbers::value_type>
    array(gn_context *of, const Numbers &values) : a_(nullptr) {
        gn_set(&a_, gn_array_from(of, number<T>::dtype(), GN_SHAPE(values.size()), values.data()));
    }
    template <class Numbers> Numbers to() const {
        Numbers values(static_cast<size_t>(size()));
        read(values.data(), values.size());
        return values;
    }
    // A variable takes the other array's place: what else refers to its old one keeps that. Of what [] gave the elements
    // are written (gn_assign): x["1:3"] = y, x[0] = 2.
    array &operator=(array other) & {
        gn_array *old = a_;
        a_ = other.a_;
        other.a_ = old;
        return *this;
    }
    array &operator=(const array &value) && {
        gn_assign(a_, value.a_);
        return *this;
    }
    GNI_FOR_NUMBERS array &operator=(S value) && {
        gn_context *g = gn_context_of(a_);
        const gn_dtype t = gn_dtype_of(a_); // of 64-bit integers a double would lose digits
        gn_assign(a_, array(number<S>::dtype() == t ? gn_full_from(g, t, GN_SHAPE(), &value)
                                                    : gn_scalar(g, t, static_cast<double>(value))));
        return *this;
    }

    operator gn_array *() const { return a_; }
    gn_array *const *list() const { return &a_; } // a list of one: gn_adam(w.list(), 1, &options)
    gn_array *release() { // hands the reference to the caller, for gn_release
        gn_array *mine = a_;
        a_ = nullptr;
        return mine;
    }

    // An axis less, or NumPy's indexing as text: x[-1], x["1:, ::-1"].
    GNI_FOR_NUMBERS array operator[](S index) const {
        static_assert(static_cast<S>(1) / 2 == 0, "an index is a whole number");
        return array(gn_at(a_, static_cast<int64_t>(index)));
    }
    array operator[](const char *subscript) const { return array(gn_index(a_, subscript)); }
    array slice(int axis, int64_t start, int64_t stop, int64_t step = 1) const {
        return array(gn_slice(a_, axis, start, stop, step));
    }
    array reshape(std::initializer_list<int64_t> dims) const {
        return array(gn_reshape(a_, gn_shape_from(static_cast<int>(dims.size()), dims.begin())));
    }
    array t() const { return array(gn_transpose(a_)); }
    array cast(gn_dtype dtype) const { return array(gn_cast(a_, dtype)); }

    gn_context *context() const { return gn_context_of(a_); }
    gn_dtype dtype() const { return gn_dtype_of(a_); }
    gn_shape shape() const { return gn_shape_of(a_); }
    int64_t size() const { return gn_size(a_); }
    int64_t dim(int axis) const { return gn_dim(a_, axis); }
    double item() const { return gn_item(a_); }
    void print() const { gn_print(a_); }
    // All gn_size elements in C order, converted to T as by gn_cast.
    template <class T> gn_status read(T *to, size_t count) const {
        const gn_dtype want = number<T>::dtype();
        return gn_read(dtype() == want ? *this : cast(want), to, count * sizeof(T));
    }

    array &requires_grad(bool on = true) {
        gn_requires_grad(a_, on);
        return *this;
    }
    gn_status backward() const { return gn_backward(a_); }
    array grad() const { // a reference of its own; empty where there is none
        array mine;
        mine.a_ = gn_retain(gn_grad(a_));
        return mine;
    }
    void zero_grad() const { gn_zero_grad(a_); }
    array detach() const { return array(gn_detach(a_)); }

// x = x op y: where that is an error x stays as it was, and a parameter is one afterwards (with gn::no_grad around it).
#define GNI_COMPOUND(op, name)                                                                     \
    array &operator op(const array &b) & {                                                         \
        gn_set(&a_, gn_##name(a_, b.a_));                                                          \
        return *this;                                                                              \
    }                                                                                              \
    GNI_FOR_NUMBERS array &operator op(S b) & {                                                    \
        gn_set(&a_, gn_##name##_s(a_, static_cast<double>(b)));                                    \
        return *this;                                                                              \
    }                                                                                              \
    void operator op(const array &b) && { gn_assign(a_, array(gn_##name(a_, b.a_))); }             \
    GNI_FOR_NUMBERS void operator op(S b) && { gn_assign(a_, array(gn_##name##_s(a_, static_cast<double>(b)))); }
    GNI_COMPOUND(+=, add)
    GNI_COMPOUND(-=, sub)
    GNI_COMPOUND(*=, mul)
    GNI_COMPOUND(/=, div)
    GNI_COMPOUND(%=, mod)
    GNI_COMPOUND(&=, and)
    GNI_COMPOUND(|=, or)
    GNI_COMPOUND(^=, xor)
#undef GNI_COMPOUND
};

// What == and its kin give. It has many truths, so `if (a == b)` does not compile: gn_array_equal gives one.
class comparison : public array {
  public:
    explicit comparison(gn_array *made) : array(made) {}
    explicit operator bool() const = delete;
};

// Numbers are doubles and do not promote, as in C's forms that end in _s. Masks are joined by & and |: (x > 0) & (x < 1).
#define GNI_OF_TWO(type, what, name)                                                               \
    inline type what(const array &a, const array &b) { return type(gn_##name(a, b)); }             \
    GNI_FOR_NUMBERS inline type what(const array &a, S b) {                                        \
        return type(gn_##name##_s(a, static_cast<double>(b)));                                     \
    }
#define GNI_OPERATOR(type, op, name, turned)                                                       \
    GNI_OF_TWO(type, operator op, name)                                                            \
    GNI_FOR_NUMBERS inline type operator op(S a, const array &b) {                                 \
        return type(gn_##turned##_s(b, static_cast<double>(a)));                                   \
    }
GNI_OPERATOR(array, +, add, add)
GNI_OPERATOR(array, -, sub, rsub)
GNI_OPERATOR(array, *, mul, mul)
GNI_OPERATOR(array, /, div, rdiv)
GNI_OF_TWO(array, operator%, mod)
GNI_OPERATOR(array, &, and, and)
GNI_OPERATOR(array, |, or, or)
GNI_OPERATOR(array, ^, xor, xor)
GNI_OPERATOR(comparison, ==, eq, eq)
GNI_OPERATOR(comparison, !=, ne, ne)
GNI_OPERATOR(comparison, <, lt, gt)
GNI_OPERATOR(comparison, <=, le, ge)
GNI_OPERATOR(comparison, >, gt, lt)
GNI_OPERATOR(comparison, >=, ge, le)
GNI_OF_TWO(array, maximum, maximum)
GNI_OF_TWO(array, minimum, minimum)
GNI_OF_TWO(array, pow, pow)
#undef GNI_OPERATOR
#undef GNI_OF_TWO
inline array where(const array &condition, const array &a, const array &b) { return array(gn_where(condition, a, b)); }
GNI_FOR_NUMBERS inline array where(const array &condition, const array &a, S b) { // gn::where(x > 0, x, 0)
    return where(condition, a, array(gn_zeros(a.context(), a.dtype(), GN_SHAPE())) + b);
}
GNI_FOR_NUMBERS inline array where(const array &condition, S a, const array &b) {
    return where(condition, array(gn_zeros(b.context(), b.dtype(), GN_SHAPE())) + a, b);
}
#undef GNI_FOR_NUMBERS
inline array operator-(const array &a) { return array(gn_neg(a)); }
inline array operator~(const array &a) { return array(gn_invert(a)); }

// What chains are made of: of gn::array, so that nothing in between is left to a scope.
#define GNI_OF_ONE(name)                                                                           \
    inline array name(const array &a) { return array(gn_##name(a)); }
#define GNI_OF_AXES(name)                                                                          \
    inline array name(const array &a, gn_axes axes = GN_ALL) { return array(gn_##name(a, axes)); }
GNI_OF_ONE(abs)
GNI_OF_ONE(sign)
GNI_OF_ONE(square)
GNI_OF_ONE(sqrt)
GNI_OF_ONE(exp)
GNI_OF_ONE(log)
GNI_OF_ONE(sin)
GNI_OF_ONE(cos)
GNI_OF_ONE(tanh)
GNI_OF_ONE(floor)
GNI_OF_ONE(round)
GNI_OF_ONE(relu)
GNI_OF_ONE(sigmoid)
GNI_OF_AXES(sum)
GNI_OF_AXES(prod)
GNI_OF_AXES(mean)
GNI_OF_AXES(any)
GNI_OF_AXES(all)
GNI_OF_AXES(argmin)
GNI_OF_AXES(argmax)
#undef GNI_OF_ONE
#undef GNI_OF_AXES
inline array matmul(const array &a, const array &b) { return array(gn_matmul(a, b)); }
inline array softmax(const array &a, int axis) { return array(gn_softmax(a, axis)); }

} // namespace gn
#endif
