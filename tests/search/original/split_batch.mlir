builtin.module {
  func.func @main(%x: tensor<4x24x18x18xf32> {isoform.name = "x"}) -> (tensor<4x40x18x18xf32> {isoform.name = "y"}) {
    %w = graph.weight @w : tensor<40x24x3x3xf32>
    %c = graph.weight @c : tensor<40xf32>
    %0 = graph.slice %x {starts = [0, 0, 0, 0], sizes = [1, 24, 18, 18], steps = [1, 1, 1, 1]} : tensor<1x24x18x18xf32>
    %1 = graph.conv %0, %w, %c {strides = [1, 1], pads = [1, 1, 1, 1], dilations = [1, 1]} : tensor<1x40x18x18xf32>
    %2 = graph.relu %1 : tensor<1x40x18x18xf32>
    %3 = graph.slice %x {starts = [1, 0, 0, 0], sizes = [1, 24, 18, 18], steps = [1, 1, 1, 1]} : tensor<1x24x18x18xf32>
    %4 = graph.conv %3, %w, %c {strides = [1, 1], pads = [1, 1, 1, 1], dilations = [1, 1]} : tensor<1x40x18x18xf32>
    %5 = graph.relu %4 : tensor<1x40x18x18xf32>
    %6 = graph.slice %x {starts = [2, 0, 0, 0], sizes = [1, 24, 18, 18], steps = [1, 1, 1, 1]} : tensor<1x24x18x18xf32>
    %7 = graph.conv %6, %w, %c {strides = [1, 1], pads = [1, 1, 1, 1], dilations = [1, 1]} : tensor<1x40x18x18xf32>
    %8 = graph.relu %7 : tensor<1x40x18x18xf32>
    %9 = graph.slice %x {starts = [3, 0, 0, 0], sizes = [1, 24, 18, 18], steps = [1, 1, 1, 1]} : tensor<1x24x18x18xf32>
    %10 = graph.conv %9, %w, %c {strides = [1, 1], pads = [1, 1, 1, 1], dilations = [1, 1]} : tensor<1x40x18x18xf32>
    %11 = graph.relu %10 : tensor<1x40x18x18xf32>
    %12 = graph.concat %2, %5, %8, %11 {axis = 0} : tensor<4x40x18x18xf32>
    func.return %12 : tensor<4x40x18x18xf32>
  }
}
