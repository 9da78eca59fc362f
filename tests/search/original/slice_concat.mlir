builtin.module {
  func.func @main(%x: tensor<4x64xf32> {isoform.name = "x"}) -> (tensor<4x64xf32> {isoform.name = "y"}) {
    %0 = graph.slice %x {starts = [0, 0], sizes = [4, 32], steps = [1, 1]} : tensor<4x32xf32>
    %1 = graph.slice %x {starts = [0, 32], sizes = [4, 32], steps = [1, 1]} : tensor<4x32xf32>
    %2 = graph.concat %0, %1 {axis = 1} : tensor<4x64xf32>
    func.return %2 : tensor<4x64xf32>
  }
}
