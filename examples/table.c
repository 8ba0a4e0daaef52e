// Sorts a table by a column, takes lines of it and sums up groups; reads and writes CSV.
// cc -O2 table.c -lm -lpthread -ldl
#define GPUNUM_IMPLEMENTATION
#include "gpunum.h"
#include <stdio.h>
#include <string.h>

enum { PLANT, HEIGHT, WEIGHT }; // columns

static const char *const text = "plant,height,weight\n"
                                "2,31.5,210\n"
                                "1,12.25,80\n"
                                "3,47,402.5\n"
                                "1,15,95.5\n"
                                "2,28.75,188\n"
                                "1,9.5,61\n"
                                "3,44.25,377\n";

static gn_array *column(gn_array *table, int i) { return gn_squeeze(gn_slice(table, 1, i, i + 1, 1), 1); }

int main(void) {
    gn_context *g = gn_open(NULL);
    int failed = 1;
    GN_SCOPE(g) {
        gn_array *table = gn_load_csv_memory(g, text, strlen(text), GN_F64, 1, ','); // gn_load_csv reads a file

        puts("by height, the largest first:");
        gn_array *order = gn_argsort(column(table, HEIGHT), 0, true);
        gn_array *sorted = gn_take(table, order, 0);
        gn_print(sorted);

        puts("by plant, and for each by weight:");
        gn_array *keys[] = {column(table, WEIGHT), column(table, PLANT)}; // the last one counts first
        gn_print(gn_take(table, gn_lexsort(keys, 2, 0), 0));

        puts("lines with more than 100 g:");
        gn_print(gn_mask(table, gn_gt_s(column(table, WEIGHT), 100)));

        puts("plant, how many, mean weight:");
        gn_array *which = NULL, *count = NULL, *plants = gn_unique(column(table, PLANT), NULL, &which, &count);
        gn_array *mean = gn_div(gn_bincount(which, column(table, WEIGHT), 0), count);
        gn_array *columns[] = {plants, gn_cast(count, GN_F64), mean};
        gn_print(gn_stack(columns, 3, 1));

        gn_save_csv(sorted, "table.csv", "plant,height,weight", ',');
        gn_array *again = gn_load_csv(g, "table.csv", GN_F64, 1, ',');
        failed = !(gn_array_equal(again, sorted, false) && gn_item(gn_index(sorted, "0, 1")) == 47);
    }
    if (gn_status_get(g) != GN_OK) fprintf(stderr, "%s\n", gn_error(g));
    gn_close(g);
    return failed;
}
