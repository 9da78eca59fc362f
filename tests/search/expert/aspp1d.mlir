// All taps are rows of one product; each result adds shifted parts.
builtin.module {
  func.func @main(%x: tensor<1x128x90xf32> {isoform.name = "x"}) -> (tensor<1x128x90xf32> {isoform.name = "y"}) {
    %w0 = graph.weight @w0 : tensor<32x128x1xf32>
    %0 = graph.reshape %w0 {shape = [32, 128]} : tensor<32x128xf32>
    %w2 = graph.weight @w2 : tensor<32x128x3xf32>
    %1 = graph.slice %w2 {starts = [0, 0, 0], sizes = [32, 128, 1], steps = [1, 1, 1]} : tensor<32x128x1xf32>
    %2 = graph.reshape %1 {shape = [32, 128]} : tensor<32x128xf32>
    %3 = graph.slice %w2 {starts = [0, 0, 1], sizes = [32, 128, 1], steps = [1, 1, 1]} : tensor<32x128x1xf32>
    %4 = graph.reshape %3 {shape = [32, 128]} : tensor<32x128xf32>
    %5 = graph.slice %w2 {starts = [0, 0, 2], sizes = [32, 128, 1], steps = [1, 1, 1]} : tensor<32x128x1xf32>
    %6 = graph.reshape %5 {shape = [32, 128]} : tensor<32x128xf32>
    %w4 = graph.weight @w4 : tensor<32x128x3xf32>
    %7 = graph.slice %w4 {starts = [0, 0, 0], sizes = [32, 128, 1], steps = [1, 1, 1]} : tensor<32x128x1xf32>
    %8 = graph.reshape %7 {shape = [32, 128]} : tensor<32x128xf32>
    %9 = graph.slice %w4 {starts = [0, 0, 1], sizes = [32, 128, 1], steps = [1, 1, 1]} : tensor<32x128x1xf32>
    %10 = graph.reshape %9 {shape = [32, 128]} : tensor<32x128xf32>
    %11 = graph.slice %w4 {starts = [0, 0, 2], sizes = [32, 128, 1], steps = [1, 1, 1]} : tensor<32x128x1xf32>
    %12 = graph.reshape %11 {shape = [32, 128]} : tensor<32x128xf32>
    %w8 = graph.weight @w8 : tensor<32x128x3xf32>
    %13 = graph.slice %w8 {starts = [0, 0, 0], sizes = [32, 128, 1], steps = [1, 1, 1]} : tensor<32x128x1xf32>
    %14 = graph.reshape %13 {shape = [32, 128]} : tensor<32x128xf32>
    %15 = graph.slice %w8 {starts = [0, 0, 1], sizes = [32, 128, 1], steps = [1, 1, 1]} : tensor<32x128x1xf32>
    %16 = graph.reshape %15 {shape = [32, 128]} : tensor<32x128xf32>
    %17 = graph.slice %w8 {starts = [0, 0, 2], sizes = [32, 128, 1], steps = [1, 1, 1]} : tensor<32x128x1xf32>
    %18 = graph.reshape %17 {shape = [32, 128]} : tensor<32x128xf32>
    %19 = graph.concat %0, %2, %4, %6, %8, %10, %12, %14, %16, %18 {axis = 0} : tensor<320x128xf32>
    %20 = graph.reshape %x {shape = [128, 90]} : tensor<128x90xf32>
    %21 = graph.matmul %19, %20 : tensor<320x90xf32>
    %22, %23, %24, %25, %26, %27, %28, %29, %30, %31 = graph.split %21 {axis = 0, sizes = [32, 32, 32, 32, 32, 32, 32, 32, 32, 32]} : tensor<32x90xf32>, tensor<32x90xf32>, tensor<32x90xf32>, tensor<32x90xf32>, tensor<32x90xf32>, tensor<32x90xf32>, tensor<32x90xf32>, tensor<32x90xf32>, tensor<32x90xf32>, tensor<32x90xf32>
    %32 = graph.relu %22 : tensor<32x90xf32>
    %33 = graph.pad %23 {pads = [0, 2, 0, 0]} : tensor<32x92xf32>
    %34 = graph.slice %33 {starts = [0, 0], sizes = [32, 90], steps = [1, 1]} : tensor<32x90xf32>
    %35 = graph.add %34, %24 : tensor<32x90xf32>
    %36 = graph.pad %25 {pads = [0, 0, 0, 2]} : tensor<32x92xf32>
    %37 = graph.slice %36 {starts = [0, 2], sizes = [32, 90], steps = [1, 1]} : tensor<32x90xf32>
    %38 = graph.add %35, %37 : tensor<32x90xf32>
    %39 = graph.relu %38 : tensor<32x90xf32>
    %40 = graph.pad %26 {pads = [0, 4, 0, 0]} : tensor<32x94xf32>
    %41 = graph.slice %40 {starts = [0, 0], sizes = [32, 90], steps = [1, 1]} : tensor<32x90xf32>
    %42 = graph.add %41, %27 : tensor<32x90xf32>
    %43 = graph.pad %28 {pads = [0, 0, 0, 4]} : tensor<32x94xf32>
    %44 = graph.slice %43 {starts = [0, 4], sizes = [32, 90], steps = [1, 1]} : tensor<32x90xf32>
    %45 = graph.add %42, %44 : tensor<32x90xf32>
    %46 = graph.relu %45 : tensor<32x90xf32>
    %47 = graph.pad %29 {pads = [0, 8, 0, 0]} : tensor<32x98xf32>
    %48 = graph.slice %47 {starts = [0, 0], sizes = [32, 90], steps = [1, 1]} : tensor<32x90xf32>
    %49 = graph.add %48, %30 : tensor<32x90xf32>
    %50 = graph.pad %31 {pads = [0, 0, 0, 8]} : tensor<32x98xf32>
    %51 = graph.slice %50 {starts = [0, 8], sizes = [32, 90], steps = [1, 1]} : tensor<32x90xf32>
    %52 = graph.add %49, %51 : tensor<32x90xf32>
    %53 = graph.relu %52 : tensor<32x90xf32>
    %54 = graph.concat %32, %39, %46, %53 {axis = 0} : tensor<128x90xf32>
    %55 = graph.reshape %54 {shape = [1, 128, 90]} : tensor<1x128x90xf32>
    func.return %55 : tensor<1x128x90xf32>
  }
}
