"""Print a whole CUDA program as one .cu file that nvcc builds by itself.

Helpers and kernels come first, then `run`, which names every buffer and launches every step, then a
`main` that reads the weights and the inputs from raw files and writes the outputs to raw files.
"""

from __future__ import annotations

from collections.abc import Iterator

from .element_types import header
from .print_library_calls import BUILD, CONV, GEMM, conv_call, gemm_call
from .program_data import Buffer, ConvCall, CudaProgram, Gemm, Launch, Port, Step
from .writer import Names, broken, identifier

_HEAD = """\
// {name}: printed by isoform.
//
//   nvcc -O3 -std=c++17 -arch=sm_90 {name}.cu -o {name}{libraries}
//   ./{name} {usage}
//
// Files are raw: elements in row-major order, as the machine has them.
{files}
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>
{includes}"""

_HOST = """\
// --- host ----------------------------------------------------------------------------------------

static void check(cudaError_t status) {
    if (status == cudaSuccess) return;
    std::fprintf(stderr, "%s\\n", cudaGetErrorString(status));
    std::exit(1);
}

[[noreturn]] static void refuse(const char *path, const char *why) {
    std::fprintf(stderr, "%s: %s\\n", path, why);
    std::exit(1);
}

// Memory on the device.
static char *reserve(size_t bytes) {
    void *address = nullptr;
    check(cudaMalloc(&address, bytes == 0 ? 1 : bytes));
    return static_cast<char *>(address);
}

// The contents of a file that must have just so many bytes, on the device.
static char *load(const char *path, size_t bytes) {
    std::FILE *file = std::fopen(path, "rb");
    if (file == nullptr) refuse(path, "cannot be read");
    std::vector<char> data(bytes + 1);
    const size_t found = std::fread(data.data(), 1, bytes + 1, file);
    std::fclose(file);
    if (found != bytes) refuse(path, found < bytes ? "too short" : "too long");
    char *address = reserve(bytes);
    check(cudaMemcpy(address, data.data(), bytes, cudaMemcpyHostToDevice));
    return address;
}

static void write(const char *path, const std::vector<char> &data) {
    std::FILE *file = std::fopen(path, "wb");
    if (file == nullptr) refuse(path, "cannot be written");
    const bool whole = std::fwrite(data.data(), 1, data.size(), file) == data.size();
    if (std::fclose(file) != 0 || !whole) refuse(path, "cannot be written whole");
}

static void save(const char *path, const void *address, size_t bytes) {
    std::vector<char> data(bytes);
    check(cudaMemcpy(data.data(), address, bytes, cudaMemcpyDeviceToHost));
    write(path, data);
}
"""

# For outputs that are a part of a buffer.
_STRIDED = """\
// Elements of `width` bytes that are not side by side; extents and strides, the innermost last.
static void save_strided(const char *path, const void *address, size_t width,
                         const std::vector<size_t> &extents, const std::vector<size_t> &strides) {
    size_t count = 1, span = 1;
    for (size_t d = 0; d < extents.size(); ++d) {
        count *= extents[d];
        span += (extents[d] - 1) * strides[d];
    }
    std::vector<char> all(span * width), data(count * width);
    check(cudaMemcpy(all.data(), address, all.size(), cudaMemcpyDeviceToHost));
    for (size_t k = 0; k < count; ++k) {
        size_t from = 0, rest = k;
        for (size_t d = extents.size(); d-- > 0; rest /= extents[d])
            from += rest % extents[d] * strides[d];
        for (size_t byte = 0; byte < width; ++byte)
            data[k * width + byte] = all[from * width + byte];
    }
    write(path, data);
}
"""

WIDTHS = {
    "float": 4,
    "double": 8,
    "__half": 2,
    "__nv_bfloat16": 2,
    "signed char": 1,
    "short": 2,
    "int": 4,
    "long long": 8,
    "unsigned char": 1,
    "unsigned short": 2,
    "unsigned int": 4,
    "unsigned long long": 8,
    "bool": 1,
}


def print_file(program: CudaProgram, name: str) -> str:
    """The text of NAME.cu."""
    return _Printer(program, name).text()


class _Printer:
    def __init__(self, program: CudaProgram, name: str) -> None:
        self.program = program
        self.name = name
        taken = ["run", "main", "check", "refuse", "reserve", "load", "save", "gemm", "convolve"]
        taken += ["write", "save_strided"]
        taken += ["arena", "weights", "stream", "std", "argc", "argv", "blas", "dnn"]
        names = Names([*taken, *(k.name for k in program.kernels)])
        self.names = [names.fresh(b.name) for b in program.buffers]
        self.uses_gemm = any(isinstance(s, Gemm) for s in program.steps)
        self.uses_conv = any(isinstance(s, ConvCall) for s in program.steps)

    def text(self) -> str:
        parts = [self._head(), *self._helpers()]
        parts += ["// --- kernels " + "-" * 86, *self._kernels()]
        strided = any(port.strides is not None for port in self.program.outputs)
        parts += [_HOST, *([_STRIDED] if strided else [])]
        parts += [*([GEMM] if self.uses_gemm else []), *([CONV] if self.uses_conv else [])]
        parts += [self._run(), self._main()]
        return "\n".join(part.rstrip("\n") + "\n" for part in parts)

    # --- head ---

    def _head(self) -> str:
        program = self.program
        files = [f"//   WEIGHTS: {program.weight_bytes} bytes"]
        files += [
            f"//   {self._file(p)} ({kind}): {p.dtype}{list(p.shape)}" for kind, p in self._ports()
        ]
        used = "\n".join([*(b.ctype for b in program.buffers), *self._helpers()])
        includes = [h for t in ("__half", "__nv_bfloat16") if t in used and (h := header(t))]
        includes += ["cublas_v2.h"] if self.uses_gemm else []
        includes += ["cudnn.h"] if self.uses_conv else []
        linked = [BUILD[key] for key, used in self._libraries() if used]
        return _HEAD.format(
            name=self.name,
            usage=self._usage(),
            libraries="".join(f" {flag}" for flag in linked),
            files="\n".join(files),
            includes="".join(f"#include <{h}>\n" for h in includes),
        )

    def _libraries(self) -> list[tuple[str, bool]]:
        return [("cublas", self.uses_gemm), ("cudnn", self.uses_conv)]

    def _ports(self) -> Iterator[tuple[str, Port]]:
        for port in self.program.inputs:
            yield "input", port
        for port in self.program.outputs:
            yield "output", port

    def _usage(self) -> str:
        return " ".join(["WEIGHTS", *(self._file(port) for _, port in self._ports())])

    def _file(self, port: Port) -> str:
        """The name of an input's or output's file in the usage."""
        return identifier(port.name)

    def _helpers(self) -> list[str]:
        """The kernels' preambles, each part once; includes go to the head of the file."""
        found = dict.fromkeys(part for k in self.program.kernels for part in k.preamble)
        return [part for part in found if not part.startswith("#include")]

    def _kernels(self) -> list[str]:
        return [kernel.definition for kernel in self.program.kernels]

    # --- steps ---

    def _run(self) -> str:
        program = self.program
        inputs = [
            f"const {program.buffers[p.buffer].ctype} *{self.names[p.buffer]}"
            for p in program.inputs
        ]
        handles = ["cublasHandle_t blas"] if self.uses_gemm else []
        handles += ["cudnnHandle_t dnn"] if self.uses_conv else []
        first = ["cudaStream_t stream", *handles, "char *arena", "const char *weights"]
        parameters = ",\n                ".join([", ".join(first), *inputs])
        lines = [
            "// Run the program: its buffers are addresses in the arena and in the weights.",
            f"static void run({parameters}) {{",
            *(f"    {text}" for text in self._addresses()),
            "",
        ]
        for step in program.steps:
            lines += broken(self._step(step), "    ")
        lines += ["    check(cudaGetLastError());", "}"]
        return "\n".join(lines)

    def _addresses(self) -> Iterator[str]:
        used = {k for step in self.program.steps for k in _buffers(step)}
        for k, buffer in enumerate(self.program.buffers):
            if buffer.kind != "input" and k in used:
                yield self._address(buffer, self.names[k])

    def _address(self, buffer: Buffer, name: str) -> str:
        const = "const " if buffer.kind == "weight" else ""
        base = "weights" if buffer.kind == "weight" else "arena"
        address = f"{base} + {buffer.offset}" if buffer.offset else base
        return f"auto *const {name} = reinterpret_cast<{const}{buffer.ctype} *>({address});"

    def _step(self, step: Step) -> str:
        match step:
            case Launch(number, buffers):
                kernel = self.program.kernels[number]
                grid, block = (_dim3(d) for d in (kernel.grid, kernel.block))
                arguments = ", ".join(self.names[k] for k in buffers)
                return f"{kernel.name}<<<{grid}, {block}, 0, stream>>>({arguments});"
            case Gemm():
                return gemm_call(step, self.names)
            case ConvCall():
                return conv_call(step, self.names)

    # --- main ---

    def _main(self) -> str:
        program = self.program
        count = 2 + len(program.inputs) + len(program.outputs)
        lines = [
            "int main(int argc, char **argv) {",
            f"    if (argc != {count}) {{",
            f'        std::fprintf(stderr, "usage: %s {self._usage()}\\n", argv[0]);',
            "        return 2;",
            "    }",
            f"    char *arena = reserve({program.arena_bytes});",
            f"    char *weights = load(argv[1], {program.weight_bytes});",
        ]
        for k, port in enumerate(program.inputs):
            bytes_ = self._bytes(port)
            lines.append(
                f"    char *input_{k} = load(argv[{2 + k}], {bytes_});  // {self._file(port)}"
            )
        lines += ["    cudaStream_t stream;", "    check(cudaStreamCreate(&stream));"]
        lines += ["    cublasHandle_t blas = make_blas(stream);"] if self.uses_gemm else []
        lines += ["    cudnnHandle_t dnn = make_dnn(stream);"] if self.uses_conv else []
        casts = [
            f"reinterpret_cast<{program.buffers[p.buffer].ctype} *>(input_{k})"
            for k, p in enumerate(program.inputs)
        ]
        handles = [h for h, used in (("blas", self.uses_gemm), ("dnn", self.uses_conv)) if used]
        lines += broken(
            f"run({', '.join(['stream', *handles, 'arena', 'weights', *casts])});", "    "
        )
        lines.append("    check(cudaStreamSynchronize(stream));")
        for k, port in enumerate(program.outputs):
            path = f"argv[{2 + len(program.inputs) + k}]"
            lines.append(f"    {self._save(port, path)}  // {self._file(port)}")
        owned = ["arena", "weights", *(f"input_{k}" for k in range(len(program.inputs)))]
        lines += broken(
            f"for (char *address : {{{', '.join(owned)}}}) check(cudaFree(address));", "    "
        )
        lines.append("    check(cudaStreamDestroy(stream));")
        return "\n".join([*lines, "}"])

    def _save(self, port: Port, path: str) -> str:
        address = self._pointer(port)
        if port.strides is None:
            return f"save({path}, {address}, {self._bytes(port)});"
        width = WIDTHS[self.program.buffers[port.buffer].ctype]
        extents, strides = (", ".join(map(str, part)) for part in (port.shape, port.strides))
        return f"save_strided({path}, {address}, {width}, {{{extents}}}, {{{strides}}});"

    def _pointer(self, port: Port) -> str:
        """The address of an output's first element."""
        buffer = self.program.buffers[port.buffer]
        offset = buffer.offset + port.offset * WIDTHS[buffer.ctype]
        base = "weights" if buffer.kind == "weight" else "arena"
        if buffer.kind == "input":
            base = f"input_{[p.buffer for p in self.program.inputs].index(port.buffer)}"
        return f"{base} + {offset}" if offset else base

    def _bytes(self, port: Port) -> int:
        count = WIDTHS[self.program.buffers[port.buffer].ctype]
        for n in port.shape:
            count *= n
        return count


def _dim3(dim: tuple[int, int, int]) -> str:
    x, y, z = dim
    return str(x) if (y, z) == (1, 1) else f"dim3({x}, {y}, {z})"


def _buffers(step: Step) -> tuple[int, ...]:
    match step:
        case Launch(_, buffers):
            return buffers
        case Gemm(a, b, c):
            return (a.buffer, b.buffer, c.buffer)
        case ConvCall():
            return tuple(tensor.buffer for tensor in step.operands)
