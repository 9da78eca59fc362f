builtin.module {
  func.func @main(%x: tensor<4x90x16xf32> {isoform.name = "x"}) -> (tensor<4x90x16xf32> {isoform.name = "y"}) {
    %0 = graph.slice %x {starts = [0, 0, 0], sizes = [4, 30, 16], steps = [1, 1, 1]} : tensor<4x30x16xf32>
    %1 = graph.slice %x {starts = [0, 30, 0], sizes = [4, 30, 16], steps = [1, 1, 1]} : tensor<4x30x16xf32>
    %2 = graph.slice %x {starts = [0, 60, 0], sizes = [4, 30, 16], steps = [1, 1, 1]} : tensor<4x30x16xf32>
    %3 = graph.concat %0, %1, %2 {axis = 1} : tensor<4x90x16xf32>
    func.return %3 : tensor<4x90x16xf32>
  }
}
