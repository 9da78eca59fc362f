// All four gates are two products, of x and of h, and one bias; each gate is a part of the columns.
func.func @main(%x: tensor<1x256xf32> {isoform.name = "x"}, %h: tensor<1x256xf32> {isoform.name = "h"}, %c: tensor<1x256xf32> {isoform.name = "c"}) -> (tensor<1x256xf32> {isoform.name = "c2"}, tensor<1x256xf32> {isoform.name = "h2"}) {
  %wxi = graph.weight @wxi : tensor<256x256xf32>
  %wxf = graph.weight @wxf : tensor<256x256xf32>
  %wxo = graph.weight @wxo : tensor<256x256xf32>
  %wxg = graph.weight @wxg : tensor<256x256xf32>
  %wx = graph.concat %wxi, %wxf, %wxo, %wxg {axis = 1} : tensor<256x1024xf32>
  %whi = graph.weight @whi : tensor<256x256xf32>
  %whf = graph.weight @whf : tensor<256x256xf32>
  %who = graph.weight @who : tensor<256x256xf32>
  %whg = graph.weight @whg : tensor<256x256xf32>
  %wh = graph.concat %whi, %whf, %who, %whg {axis = 1} : tensor<256x1024xf32>
  %bi = graph.weight @bi : tensor<256xf32>
  %bf = graph.weight @bf : tensor<256xf32>
  %bo = graph.weight @bo : tensor<256xf32>
  %bg = graph.weight @bg : tensor<256xf32>
  %biases = graph.concat %bi, %bf, %bo, %bg {axis = 0} : tensor<1024xf32>
  %bias = graph.reshape %biases {shape = [1, 1024]} : tensor<1x1024xf32>
  %0 = graph.matmul %x, %wx : tensor<1x1024xf32>
  %1 = graph.matmul %h, %wh : tensor<1x1024xf32>
  %2 = graph.add %0, %1 : tensor<1x1024xf32>
  %gates = graph.add %2, %bias : tensor<1x1024xf32>
  %3, %4, %5, %6 = graph.split %gates {axis = 1, sizes = [256, 256, 256, 256]} : tensor<1x256xf32>, tensor<1x256xf32>, tensor<1x256xf32>, tensor<1x256xf32>
  %7 = graph.sigmoid %4 : tensor<1x256xf32>
  %8 = graph.mul %7, %c : tensor<1x256xf32>
  %9 = graph.sigmoid %3 : tensor<1x256xf32>
  %10 = graph.tanh %6 : tensor<1x256xf32>
  %11 = graph.mul %9, %10 : tensor<1x256xf32>
  %c2 = graph.add %8, %11 : tensor<1x256xf32>
  %12 = graph.sigmoid %5 : tensor<1x256xf32>
  %13 = graph.tanh %c2 : tensor<1x256xf32>
  %h2 = graph.mul %12, %13 : tensor<1x256xf32>
  func.return %c2, %h2 : tensor<1x256xf32>, tensor<1x256xf32>
}
