builtin.module {
  func.func @main(%x: tensor<1x256xf32> {isoform.name = "x"}, %h: tensor<1x256xf32> {isoform.name = "h"}, %c: tensor<1x256xf32> {isoform.name = "c"}) -> (tensor<1x256xf32> {isoform.name = "c2"}, tensor<1x256xf32> {isoform.name = "h2"}) {
    %wxi = graph.weight @wxi : tensor<256x256xf32>
    %0 = graph.matmul %x, %wxi : tensor<1x256xf32>
    %whi = graph.weight @whi : tensor<256x256xf32>
    %1 = graph.matmul %h, %whi : tensor<1x256xf32>
    %2 = graph.add %0, %1 : tensor<1x256xf32>
    %bi = graph.weight @bi : tensor<256xf32>
    %3 = graph.broadcast %bi {shape = [1, 256], dims = [1]} : tensor<1x256xf32>
    %4 = graph.add %2, %3 : tensor<1x256xf32>
    %5 = graph.sigmoid %4 : tensor<1x256xf32>
    %wxf = graph.weight @wxf : tensor<256x256xf32>
    %6 = graph.matmul %x, %wxf : tensor<1x256xf32>
    %whf = graph.weight @whf : tensor<256x256xf32>
    %7 = graph.matmul %h, %whf : tensor<1x256xf32>
    %8 = graph.add %6, %7 : tensor<1x256xf32>
    %bf = graph.weight @bf : tensor<256xf32>
    %9 = graph.broadcast %bf {shape = [1, 256], dims = [1]} : tensor<1x256xf32>
    %10 = graph.add %8, %9 : tensor<1x256xf32>
    %11 = graph.sigmoid %10 : tensor<1x256xf32>
    %wxo = graph.weight @wxo : tensor<256x256xf32>
    %12 = graph.matmul %x, %wxo : tensor<1x256xf32>
    %who = graph.weight @who : tensor<256x256xf32>
    %13 = graph.matmul %h, %who : tensor<1x256xf32>
    %14 = graph.add %12, %13 : tensor<1x256xf32>
    %bo = graph.weight @bo : tensor<256xf32>
    %15 = graph.broadcast %bo {shape = [1, 256], dims = [1]} : tensor<1x256xf32>
    %16 = graph.add %14, %15 : tensor<1x256xf32>
    %17 = graph.sigmoid %16 : tensor<1x256xf32>
    %wxg = graph.weight @wxg : tensor<256x256xf32>
    %18 = graph.matmul %x, %wxg : tensor<1x256xf32>
    %whg = graph.weight @whg : tensor<256x256xf32>
    %19 = graph.matmul %h, %whg : tensor<1x256xf32>
    %20 = graph.add %18, %19 : tensor<1x256xf32>
    %bg = graph.weight @bg : tensor<256xf32>
    %21 = graph.broadcast %bg {shape = [1, 256], dims = [1]} : tensor<1x256xf32>
    %22 = graph.add %20, %21 : tensor<1x256xf32>
    %23 = graph.tanh %22 : tensor<1x256xf32>
    %24 = graph.mul %11, %c : tensor<1x256xf32>
    %25 = graph.mul %5, %23 : tensor<1x256xf32>
    %26 = graph.add %24, %25 : tensor<1x256xf32>
    %27 = graph.tanh %26 : tensor<1x256xf32>
    %28 = graph.mul %17, %27 : tensor<1x256xf32>
    func.return %26, %28 : tensor<1x256xf32>, tensor<1x256xf32>
  }
}
