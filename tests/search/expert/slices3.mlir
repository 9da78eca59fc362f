// Three neighbouring slices are the input.
builtin.module {
  func.func @main(%x: tensor<4x90x16xf32> {isoform.name = "x"}) -> (tensor<4x90x16xf32> {isoform.name = "y"}) {
    func.return %x : tensor<4x90x16xf32>
  }
}
