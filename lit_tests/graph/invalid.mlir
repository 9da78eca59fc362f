// RUN: isoform-opt %s --split-input-file --verify-diagnostics

// The text: operands, properties and types, the same for every op.

func.func @missing_operand(%x: tensor<4xf32>) {
  // expected-error@+1 {{graph.add: operand 'b' is missing: expected 2, found 1}}
  %y = graph.add %x : tensor<4xf32>
  func.return
}

// -----

func.func @too_many_operands(%x: tensor<4xf32>) {
  // expected-error@+1 {{graph.relu: too many operands: expected at most 1, found 2}}
  %y = graph.relu %x, %x : tensor<4xf32>
  func.return
}

// -----

func.func @undefined_operand(%x: tensor<4xf32>) {
  // expected-error@+1 {{value %z is used before it is defined}}
  %y = graph.relu %z : tensor<4xf32>
  func.return
}

// -----

func.func @unknown_operation(%x: tensor<4xf32>) {
  // expected-error@+1 {{unknown operation 'graph.reul' (did you mean 'graph.relu'?)}}
  %y = graph.reul %x : tensor<4xf32>
  func.return
}

// -----

func.func @unknown_property(%x: tensor<4xf32>) {
  // expected-error@+1 {{graph.softmax has no property 'axs': did you mean 'axis'?}}
  %y = graph.softmax %x {axs = 0} : tensor<4xf32>
  func.return
}

// -----

func.func @missing_property(%x: tensor<4xf32>) {
  // expected-error@+1 {{property 'axis' expected in operation 'graph.softmax'}}
  %y = graph.softmax %x : tensor<4xf32>
  func.return
}

// -----

func.func @property_of_another_kind(%x: tensor<4xf32>) {
  // expected-error@+1 {{graph.softmax: property 'axis' is of another kind: expected Integer}}
  %y = graph.softmax %x {axis = "last"} : tensor<4xf32>
  func.return
}

// -----

func.func @fractions_in_a_list(%x: tensor<4xf32>) {
  // expected-error@+1 {{'graph.transpose': property 'perm' needs whole numbers: found [0.5]}}
  %y = graph.transpose %x {perm = [0.5]} : tensor<4xf32>
  func.return
}

// -----

func.func @wrong_number_of_results(%x: tensor<4xf32>) {
  // expected-error@+1 {{graph.relu: wrong number of results: expected 1, found 2}}
  %y, %z = graph.relu %x : tensor<4xf32>, tensor<4xf32>
  func.return
}

// -----

func.func @wrong_number_of_parts(%x: tensor<4xf32>) {
  // expected-error@+1 {{result types do not follow from the operands: expected tensor<1xf32>, tensor<3xf32>, found tensor<4xf32>}}
  %y = graph.split %x {axis = 0, sizes = [1, 3]} : tensor<4xf32>
  func.return
}

// -----

func.func @wrong_result_type(%x: tensor<4xf32>) {
  // expected-error@+1 {{'graph.relu': result types do not follow from the operands: expected tensor<4xf32>, found tensor<5xf32>}}
  %y = graph.relu %x : tensor<5xf32>
  func.return
}

// -----

func.func @no_tensor(%x: i32) {
  // expected-error@+1 {{operand 'x' at position 0 does not verify}}
  %y = graph.relu %x : tensor<4xf32>
  func.return
}

// -----

func.func @generic_form(%x: tensor<4xf32>) {
  %y = "graph.cast"(%x) <{to = i32}> : (tensor<4xf32>) -> tensor<4xi32>
  // expected-error@+1 {{'graph.exp': operands must be floats: found i32}}
  %z = "graph.exp"(%y) : (tensor<4xi32>) -> tensor<4xi32>
  func.return
}

// -----

// What the ops ask of their operands and properties.

func.func @shapes_differ(%a: tensor<4xf32>, %b: tensor<3xf32>) {
  // expected-error@+1 {{'graph.add': operands must have equal shapes: found tensor<4xf32> and tensor<3xf32> (broadcast explicitly with graph.broadcast)}}
  %y = graph.add %a, %b : tensor<4xf32>
  func.return
}

// -----

func.func @elements_differ(%a: tensor<4xf32>, %b: tensor<4xf64>) {
  // expected-error@+1 {{'graph.add': operands must have one element type: found f32 and f64}}
  %y = graph.add %a, %b : tensor<4xf32>
  func.return
}

// -----

func.func @no_booleans(%a: tensor<4xf32>, %b: tensor<4xf32>) {
  // expected-error@+1 {{'graph.and': operands must be i1: found f32}}
  %y = graph.and %a, %b : tensor<4xf32>
  func.return
}

// -----

func.func @no_floats(%a: tensor<4xi32>) {
  // expected-error@+1 {{'graph.exp': operands must be floats: found i32}}
  %y = graph.exp %a : tensor<4xi32>
  func.return
}

// -----

func.func @unsigned(%a: tensor<4xui8>) {
  // expected-error@+1 {{'graph.abs': operands must be floats or signed integers: found ui8}}
  %y = graph.abs %a : tensor<4xui8>
  func.return
}

// -----

func.func @small_floats_are_moved(%a: tensor<4xf8E5M2>) {
  // expected-error@+1 {{'graph.abs': floats of 8 and 4 bits are only converted and moved: found f8E5M2}}
  %y = graph.abs %a : tensor<4xf8E5M2>
  func.return
}

// -----

func.func @cast_to_no_element(%a: tensor<4xf32>) {
  // expected-error@+1 {{'graph.cast': element type index has no numpy counterpart}}
  %y = graph.cast %a {to = index} : tensor<4xf32>
  func.return
}

// -----

func.func @where_without_condition(%a: tensor<4xf32>, %b: tensor<4xf32>, %c: tensor<4xf32>) {
  // expected-error@+1 {{'graph.where': a boolean condition and two operands of one type are needed}}
  %y = graph.where %a, %b, %c : tensor<4xf32>
  func.return
}

// -----

func.func @matmul_ranks(%a: tensor<2x3xf32>, %b: tensor<4xf32>) {
  // expected-error@+1 {{'graph.matmul': operands need one rank of at least 2 and equal batch dims}}
  %y = graph.matmul %a, %b : tensor<2x3xf32>
  func.return
}

// -----

func.func @matmul_elements(%a: tensor<2x3xf32>, %b: tensor<3x2xf64>) {
  // expected-error@+1 {{'graph.matmul': operands need one element type}}
  %y = graph.matmul %a, %b : tensor<2x3xf32>
  func.return
}

// -----

func.func @matmul_inner(%a: tensor<2x3xf32>, %b: tensor<2x3xf32>) {
  // expected-error@+1 {{'graph.matmul': inner dims differ: expected 3, found 2}}
  %y = graph.matmul %a, %b : tensor<2x3xf32>
  func.return
}

// -----

func.func @conv_ranks(%a: tensor<2x3xf32>, %b: tensor<2x3xf32>) {
  // expected-error@+1 {{'graph.conv': x and w need one rank of at least 3}}
  %y = graph.conv %a, %b {strides = [1, 1], pads = [0, 0, 0, 0], dilations = [1, 1]} : tensor<2x3xf32>
  func.return
}

// -----

func.func @conv_strides(%a: tensor<1x4x5x5xf32>, %b: tensor<6x4x3x3xf32>) {
  // expected-error@+1 {{'graph.conv': 'strides' needs 2 numbers: found [1]}}
  %y = graph.conv %a, %b {strides = [1], pads = [0, 0, 0, 0], dilations = [1, 1]} : tensor<2x3xf32>
  func.return
}

// -----

func.func @conv_zero_stride(%a: tensor<1x4x5x5xf32>, %b: tensor<6x4x3x3xf32>) {
  // expected-error@+1 {{'graph.conv': strides and dilations are at least 1}}
  %y = graph.conv %a, %b {strides = [0, 1], pads = [0, 0, 0, 0], dilations = [1, 1]} : tensor<2x3xf32>
  func.return
}

// -----

func.func @conv_no_groups(%a: tensor<1x4x5x5xf32>, %b: tensor<6x4x3x3xf32>) {
  // expected-error@+1 {{'graph.conv': 'groups' is at least 1: found 0}}
  %y = graph.conv %a, %b {strides = [1, 1], pads = [0, 0, 0, 0], dilations = [1, 1], groups = 0} : tensor<2x3xf32>
  func.return
}

// -----

func.func @conv_elements(%a: tensor<1x4x5x5xf32>, %b: tensor<6x4x3x3xf64>) {
  // expected-error@+1 {{'graph.conv': x and w need one element type}}
  %y = graph.conv %a, %b {strides = [1, 1], pads = [0, 0, 0, 0], dilations = [1, 1]} : tensor<2x3xf32>
  func.return
}

// -----

func.func @conv_bias(%a: tensor<1x4x5x5xf32>, %b: tensor<6x4x3x3xf32>, %c: tensor<5xf32>) {
  // expected-error@+1 {{'graph.conv': bias needs one number per output channel: expected tensor<6xf32>, found tensor<5xf32>}}
  %y = graph.conv %a, %b, %c {strides = [1, 1], pads = [0, 0, 0, 0], dilations = [1, 1]} : tensor<2x3xf32>
  func.return
}

// -----

func.func @conv_groups(%a: tensor<1x4x5x5xf32>, %b: tensor<6x4x3x3xf32>) {
  // expected-error@+1 {{'graph.conv': channels do not fit 2 groups: expected 8, found 4}}
  %y = graph.conv %a, %b {strides = [1, 1], pads = [0, 0, 0, 0], dilations = [1, 1], groups = 2} : tensor<2x3xf32>
  func.return
}

// -----

func.func @conv_kernel(%a: tensor<1x4x5x5xf32>, %b: tensor<6x4x6x3xf32>) {
  // expected-error@+1 {{'graph.conv': the kernel is larger than the padded image in dim 0}}
  %y = graph.conv %a, %b {strides = [1, 1], pads = [0, 0, 0, 0], dilations = [1, 1]} : tensor<2x3xf32>
  func.return
}

// -----

func.func @g2bmm_types(%a: tensor<2x3x5xf32>, %b: tensor<2x3xf32>) {
  // expected-error@+1 {{'graph.g2bmm': operands need one type of rank 3}}
  %y = graph.g2bmm %a, %b {width = 1} : tensor<2x3x3xf32>
  func.return
}

// -----

func.func @g2bmm_width(%a: tensor<2x3x5xf32>, %b: tensor<2x3x5xf32>) {
  // expected-error@+1 {{'graph.g2bmm': 'width' is at least 0 and 'dilation' at least 1}}
  %y = graph.g2bmm %a, %b {width = -1} : tensor<2x3x3xf32>
  func.return
}

// -----

func.func @resample_axis(%a: tensor<3xf32>, %w: tensor<2x6xf32>) {
  // expected-error@+1 {{'graph.resample': axis 1 is not in [0, 1)}}
  %y = graph.resample %a, %w {axis = 1} : tensor<6xf32>
  func.return
}

// -----

func.func @resample_weights(%a: tensor<3xf32>, %w: tensor<6xf32>) {
  // expected-error@+1 {{'graph.resample': weights need rank 2 and the operand's element type}}
  %y = graph.resample %a, %w {axis = 0} : tensor<6xf32>
  func.return
}

// -----

func.func @resample_step(%a: tensor<3xf32>, %w: tensor<2x6xf32>) {
  // expected-error@+1 {{'graph.resample': 'step' and 'per' are at least 1}}
  %y = graph.resample %a, %w {axis = 0, step = 0} : tensor<6xf32>
  func.return
}

// -----

func.func @gbmm_ranks(%a: tensor<2x3x5xf32>, %b: tensor<2x3xf32>) {
  // expected-error@+1 {{'graph.gbmm': operands need rank 3}}
  %y = graph.gbmm %a, %b : tensor<2x3xf32>
  func.return
}

// -----

func.func @gbmm_rows(%a: tensor<2x3x5xf32>, %b: tensor<2x5x4xf32>) {
  // expected-error@+1 {{'graph.gbmm': batch, rows or element types differ}}
  %y = graph.gbmm %a, %b : tensor<2x5x4xf32>
  func.return
}

// -----

func.func @gbmm_columns(%a: tensor<2x3x4xf32>, %b: tensor<2x3x5xf32>) {
  // expected-error@+1 {{'graph.gbmm': a band has an odd number of columns}}
  %y = graph.gbmm %a, %b : tensor<2x3x5xf32>
  func.return
}

// -----

func.func @gbmm_dilation(%a: tensor<2x3x5xf32>, %b: tensor<2x3x5xf32>) {
  // expected-error@+1 {{'graph.gbmm': 'dilation' is at least 1: found 0}}
  %y = graph.gbmm %a, %b {dilation = 0} : tensor<2x3x5xf32>
  func.return
}

// -----

func.func @conv_transpose_rows(%a: tensor<1x4x5x5xf32>, %b: tensor<3x6x3x3xf32>) {
  // expected-error@+1 {{'graph.conv_transpose': w needs one row per input channel: expected 4, found 3}}
  %y = graph.conv_transpose %a, %b {strides = [1, 1], pads = [0, 0, 0, 0], dilations = [1, 1], output_padding = [0, 0]} : tensor<2x3xf32>
  func.return
}

// -----

func.func @conv_transpose_groups(%a: tensor<1x4x5x5xf32>, %b: tensor<4x6x3x3xf32>) {
  // expected-error@+1 {{'graph.conv_transpose': channels do not fit 3 groups: found 4}}
  %y = graph.conv_transpose %a, %b {strides = [1, 1], pads = [0, 0, 0, 0], dilations = [1, 1], output_padding = [0, 0], groups = 3} : tensor<2x3xf32>
  func.return
}

// -----

func.func @conv_transpose_padding(%a: tensor<1x4x5x5xf32>, %b: tensor<4x6x3x3xf32>) {
  // expected-error@+1 {{'graph.conv_transpose': 'output_padding' needs 2 numbers: found [0]}}
  %y = graph.conv_transpose %a, %b {strides = [1, 1], pads = [0, 0, 0, 0], dilations = [1, 1], output_padding = [0]} : tensor<2x3xf32>
  func.return
}

// -----

func.func @conv_transpose_pads(%a: tensor<1x4x5x5xf32>, %b: tensor<4x6x3x3xf32>) {
  // expected-error@+1 {{'graph.conv_transpose': the pads leave no output}}
  %y = graph.conv_transpose %a, %b {strides = [1, 1], pads = [4, 0, 4, 0], dilations = [1, 1], output_padding = [0, 0]} : tensor<2x3xf32>
  func.return
}

// -----

func.func @pool_rank(%a: tensor<2x3xf32>) {
  // expected-error@+1 {{'graph.max_pool': an operand of rank at least 3 is needed}}
  %y = graph.max_pool %a {strides = [1, 1], pads = [0, 0, 0, 0], dilations = [1, 1], kernel = [2, 2]} : tensor<2x3xf32>
  func.return
}

// -----

func.func @pool_kernel(%a: tensor<1x4x5x5xf32>) {
  // expected-error@+1 {{'graph.max_pool': 'kernel' needs 2 numbers: found [2]}}
  %y = graph.max_pool %a {strides = [1, 1], pads = [0, 0, 0, 0], dilations = [1, 1], kernel = [2]} : tensor<2x3xf32>
  func.return
}

// -----

func.func @pool_stride(%a: tensor<1x4x5x5xf32>) {
  // expected-error@+1 {{'graph.max_pool': 'strides' is at least 1: found [0, 1]}}
  %y = graph.max_pool %a {strides = [0, 1], pads = [0, 0, 0, 0], dilations = [1, 1], kernel = [2, 2]} : tensor<2x3xf32>
  func.return
}

// -----

func.func @pool_window(%a: tensor<1x4x5x5xf32>) {
  // expected-error@+1 {{'graph.max_pool': the window is larger than the padded image in dim 0}}
  %y = graph.max_pool %a {strides = [1, 1], pads = [0, 0, 0, 0], dilations = [1, 1], kernel = [6, 2]} : tensor<2x3xf32>
  func.return
}

// -----

func.func @pool_unsigned(%a: tensor<1x4x5x5xui8>) {
  // expected-error@+1 {{'graph.max_pool': operands must be floats or signed integers}}
  %y = graph.max_pool %a {strides = [1, 1], pads = [0, 0, 0, 0], dilations = [1, 1], kernel = [2, 2]} : tensor<2x3xf32>
  func.return
}

// -----

func.func @average_of_integers(%a: tensor<1x4x5x5xi32>) {
  // expected-error@+1 {{'graph.avg_pool': averages are taken of floats}}
  %y = graph.avg_pool %a {strides = [1, 1], pads = [0, 0, 0, 0], dilations = [1, 1], kernel = [2, 2]} : tensor<2x3xf32>
  func.return
}

// -----

func.func @reduce_axes(%a: tensor<2x3xf32>) {
  // expected-error@+1 {{'graph.reduce_sum': axes must be sorted, distinct and in [0, 2): found [1, 0]}}
  %y = graph.reduce_sum %a {axes = [1, 0]} : tensor<2x3xf32>
  func.return
}

// -----

func.func @reduce_booleans(%a: tensor<2x3xi1>) {
  // expected-error@+1 {{'graph.reduce_max': operands must be floats or signed integers}}
  %y = graph.reduce_max %a {axes = [0]} : tensor<2x3xf32>
  func.return
}

// -----

func.func @softmax_axis(%a: tensor<2x3xf32>) {
  // expected-error@+1 {{'graph.softmax': axis 2 does not fit a float tensor}}
  %y = graph.softmax %a {axis = 2} : tensor<2x3xf32>
  func.return
}

// -----

func.func @layer_norm_axis(%a: tensor<2x3xf32>, %b: tensor<3xf32>) {
  // expected-error@+1 {{'graph.layer_norm': axis 2 does not fit a float tensor}}
  %y = graph.layer_norm %a, %b {axis = 2} : tensor<2x3xf32>
  func.return
}

// -----

func.func @layer_norm_scale(%a: tensor<2x3xf32>, %b: tensor<2xf32>) {
  // expected-error@+1 {{'graph.layer_norm': scale and bias have the normalised dims' shape: expected tensor<3xf32>, found tensor<2xf32>}}
  %y = graph.layer_norm %a, %b {axis = 1} : tensor<2x3xf32>
  func.return
}

// -----

func.func @instance_norm_rank(%a: tensor<2x3xf32>, %b: tensor<4xf32>, %c: tensor<4xf32>) {
  // expected-error@+1 {{'graph.instance_norm': a float tensor of rank at least 3 is needed}}
  %y = graph.instance_norm %a, %b, %c : tensor<2x3xf32>
  func.return
}

// -----

func.func @instance_norm_scale(%a: tensor<1x4x5x5xf32>, %b: tensor<4xf32>, %c: tensor<5xf32>) {
  // expected-error@+1 {{'graph.instance_norm': scale and bias are per channel: expected tensor<4xf32>}}
  %y = graph.instance_norm %a, %b, %c : tensor<1x4x5x5xf32>
  func.return
}

// -----

func.func @batch_norm_rank(%a: tensor<4xf32>, %b: tensor<4xf32>, %c: tensor<4xf32>, %d: tensor<4xf32>, %e: tensor<4xf32>) {
  // expected-error@+1 {{'graph.batch_norm': a float tensor of rank at least 2 is needed}}
  %y = graph.batch_norm %a, %b, %c, %d, %e : tensor<4xf32>
  func.return
}

// -----

func.func @batch_norm_statistics(%a: tensor<1x4x5x5xf32>, %b: tensor<4xf32>, %c: tensor<4xf32>, %d: tensor<4xf32>, %e: tensor<5xf32>) {
  // expected-error@+1 {{'graph.batch_norm': statistics are per channel: expected tensor<4xf32>, found tensor<5xf32>}}
  %y = graph.batch_norm %a, %b, %c, %d, %e : tensor<1x4x5x5xf32>
  func.return
}

// -----

func.func @lrn_size(%a: tensor<1x4x5x5xf32>) {
  // expected-error@+1 {{'graph.lrn': a float tensor of rank at least 2 and a size of at least 1}}
  %y = graph.lrn %a {size = 0} : tensor<1x4x5x5xf32>
  func.return
}

// -----

func.func @reshape_negative(%a: tensor<2x3xf32>) {
  // expected-error@+1 {{'graph.reshape': extents are at least 0: found [-1]}}
  %y = graph.reshape %a {shape = [-1]} : tensor<2x3xf32>
  func.return
}

// -----

func.func @reshape_count(%a: tensor<2x3xf32>) {
  // expected-error@+1 {{'graph.reshape': the element counts differ: expected tensor<2x3xf32>, found [5]}}
  %y = graph.reshape %a {shape = [5]} : tensor<2x3xf32>
  func.return
}

// -----

func.func @transpose_perm(%a: tensor<2x3xf32>) {
  // expected-error@+1 {{'graph.transpose': 'perm' is not a permutation of the dims: found [0, 0]}}
  %y = graph.transpose %a {perm = [0, 0]} : tensor<2x3xf32>
  func.return
}

// -----

func.func @broadcast_dims(%a: tensor<2x3xf32>) {
  // expected-error@+1 {{'graph.broadcast': 'dims' needs one increasing entry per operand dim: found [1, 0]}}
  %y = graph.broadcast %a {shape = [2, 3], dims = [1, 0]} : tensor<2x3xf32>
  func.return
}

// -----

func.func @broadcast_extent(%a: tensor<2x3xf32>) {
  // expected-error@+1 {{'graph.broadcast': operand dim 0 does not broadcast to [4, 3]: found tensor<2x3xf32>}}
  %y = graph.broadcast %a {shape = [4, 3], dims = [0, 1]} : tensor<2x3xf32>
  func.return
}

// -----

func.func @broadcast_negative(%a: tensor<f32>) {
  // expected-error@+1 {{'graph.broadcast': an extent would be negative}}
  %y = graph.broadcast %a {shape = [-2], dims = []} : tensor<2x3xf32>
  func.return
}

// -----

func.func @concat_nothing() {
  // expected-error@+1 {{'graph.concat': at least one operand is needed}}
  %y = graph.concat {axis = 0} : tensor<2x3xf32>
  func.return
}

// -----

func.func @concat_axis(%a: tensor<2x3xf32>) {
  // expected-error@+1 {{'graph.concat': axis 2 is not in [0, 2)}}
  %y = graph.concat %a {axis = 2} : tensor<2x3xf32>
  func.return
}

// -----

func.func @concat_shapes(%a: tensor<2x3xf32>, %b: tensor<3x3xf32>) {
  // expected-error@+1 {{'graph.concat': operands differ beside the axis: expected tensor<2x3xf32>, found tensor<3x3xf32>}}
  %y = graph.concat %a, %b {axis = 1} : tensor<2x3xf32>
  func.return
}

// -----

func.func @slice_lists(%a: tensor<2x3xf32>) {
  // expected-error@+1 {{'graph.slice': one start, size and step per dim are needed}}
  %y = graph.slice %a {starts = [0, 0], sizes = [1], steps = [1, 1]} : tensor<2x3xf32>
  func.return
}

// -----

func.func @slice_bounds(%a: tensor<2x3xf32>) {
  // expected-error@+1 {{'graph.slice': the slice leaves dim 1 of extent 3}}
  %y = graph.slice %a {starts = [0, 0], sizes = [1, 4], steps = [1, 1]} : tensor<2x3xf32>
  func.return
}

// -----

func.func @split_sizes(%a: tensor<2x3xf32>) {
  // expected-error@+1 {{'graph.split': sizes [4, -1] do not make up dim 1: found tensor<2x3xf32>}}
  %y = graph.split %a {axis = 1, sizes = [4, -1]} : tensor<2x3xf32>
  func.return
}

// -----

func.func @pad_count(%a: tensor<2x3xf32>) {
  // expected-error@+1 {{'graph.pad': 4 pads are needed: found [1, 1]}}
  %y = graph.pad %a {pads = [1, 1]} : tensor<2x3xf32>
  func.return
}

// -----

func.func @pad_crop(%a: tensor<2x3xf32>) {
  // expected-error@+1 {{'graph.pad': the pads crop more than there is: found [-1, 3]}}
  %y = graph.pad %a {pads = [-2, 0, -1, 0]} : tensor<2x3xf32>
  func.return
}

// -----

func.func @gather_axis(%a: tensor<2x3xf32>, %b: tensor<4xi64>) {
  // expected-error@+1 {{'graph.gather': axis 2 is not in [0, 2)}}
  %y = graph.gather %a, %b {axis = 2} : tensor<2x3xf32>
  func.return
}

// -----

func.func @gather_indices(%a: tensor<2x3xf32>, %b: tensor<4xf32>) {
  // expected-error@+1 {{'graph.gather': indices are i32 or i64: found tensor<4xf32>}}
  %y = graph.gather %a, %b : tensor<2x3xf32>
  func.return
}

// -----

func.func @arg_max_axis(%a: tensor<2x3xf32>) {
  // expected-error@+1 {{'graph.arg_max': axis 2 is not in [0, 2), or empty}}
  %y = graph.arg_max %a {axis = 2} : tensor<2x3xf32>
  func.return
}

// -----

// Data.

func.func @constant_type() {
  // expected-error@+1 {{'graph.constant': the literal's type is not the result's type}}
  %y = "graph.constant"() <{data = dense<1.0> : tensor<2xf32>}> : () -> tensor<3xf32>
  func.return
}

// -----

func.func @constant_literal() {
  // expected-error@+1 {{graph.constant needs a `dense<...> : tensor<...>` literal}}
  %y = graph.constant 3 : i32
  func.return
}

// -----

func.func @opaque_node(%a: tensor<4xf32>) {
  // expected-error@+1 {{'graph.opaque': the node is not written in hexadecimal}}
  %y = graph.opaque "NonZero"(%a) node "zz" opset ["=18"] : (tensor<4xf32>) -> tensor<1x4xi64>
  func.return
}

// -----

func.func @opaque_opset(%a: tensor<4xf32>) {
  // expected-error@+1 {{'graph.opaque': opset entries read 'domain=version', found '18'}}
  %y = graph.opaque "NonZero"(%a) node "0a" opset ["18"] : (tensor<4xf32>) -> tensor<1x4xi64>
  func.return
}
