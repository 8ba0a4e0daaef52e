"""What the scripts that write PyTorch's values share."""
import torch


def series(n, scale, shift):
    """The same numbers as series() in the tests: no generator of random numbers to agree on."""
    return torch.tensor([((i * 7919 + 104729) % 1000) / 1000.0 * scale + shift for i in range(n)])


def emit(name, values, note):
    flat = [float(v) for v in torch.as_tensor(values).reshape(-1)]
    print(f"// {note}")
    print(f"static const double {name}[] = {{")
    for at in range(0, len(flat), 4):
        print("    " + " ".join(f"{v:.17g}," for v in flat[at:at + 4]))
    print("};\n")
