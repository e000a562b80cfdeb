"""Expert parallelism: dispatch and combine of MoE layers (weft_ep.h has the contracts).

    group = Group(world, experts=64, tokens_max=4096, topk_max=8, row_bytes_max=2 * 7168)
    route = group.route(topk=8)                                   # RANK_MAJOR, or another Layout
    rows = route.update(ids, weights).rows                        # ids [T][K] int64 or int32: who gets what; collective
    route.dispatch(Rows(x), Rows(received))                       # x [T][H], received [N][H]
    route.combine(Rows(results), Rows(y))                         # results [N][H], y [T][H]

R ranks, E experts, L of them here, T tokens, K choices a token, H elements a row, N rows received. Tensors are torch's or
numpy's, of the CPU or, for a group with on_device, of the world's GPU; then calls are enqueued on `stream` (a torch stream,
anything with __cuda_stream__, or an address; None: the default stream), and no call waits for it. Calls on a group are
collective, made by all ranks in the same order. Tensors of a call must stay until it is complete.
"""

import collections
import ctypes
import enum
import weakref

import weft
from weft import _weft


class Layout(enum.IntEnum):
    """How received rows lie."""

    RANK_MAJOR = 0  #: a row a (source, token)
    EXPERT_MAJOR = 1  #: a row a (source, token, choice), grouped by local expert
    SLOTS_SOURCE = 2  #: padded, [R][Tmax]
    SLOTS_EXPERT = 3  #: padded, [L][R * Tmax]


class Scale(enum.IntEnum):
    """Scales of fp8 rows, one for 128 elements (UE8M0_32: for 32): float32, or powers of two, four to an int32 (F32_POW2: as
    float32)."""

    NONE = 0
    F32 = 1
    UE8M0 = 2
    UE8M0_32 = 3
    F32_POW2 = 5


WEIGHTED = 1  #: combine: apply weights while adding
ZERO_PADDING = 1  #: plan: rows of padding are set to zero
DESTINATIONS = 2  #: plan: tokens go to ranks, not to experts
MASK_ON_TIMEOUT = 1  #: group: a call whose deadline passes masks who is missing and goes on
ORDER_RANK, ORDER_CHOICE = 0, 1

_DTYPES = {"float32": 1, "bfloat16": 2, "float16": 3, "float8_e4m3fn": 4}
_WIDTHS = (0, 4, 2, 2, 1)  # bytes of an element of each
_IDS = {"int32": 0, "int64": 1}
# The types that an array may be of, and their numbers in the extension's array().
_FLOATS, _INTS, _INTS_OR_LONGS, _BYTES = (("float32",), 1), (("int32",), 2), (tuple(_IDS), 6), (("bool", "uint8"), 0)
_LONGS = ("int64",), 4
_ON_CPU, _ON_DEVICE = 1, 2  # DLPack's numbers
_codes: dict = {}  # of dtypes: their names and numbers

Counts = collections.namedtuple("Counts", "rows tokens dropped local_experts first_expert status dropped_rows")


def take_tensors_of(torch):
    """The extension's calls take tensors of torch for their addresses from now on, with no attribute of them looked at where torch has
    DLPack's exchange functions (2.10 and later)."""
    names = ("__dlpack_c_exchange_api__", "__c_dlpack_exchange_api__")
    _weft.tensors(torch.Tensor, next((getattr(torch.Tensor, name) for name in names if hasattr(torch.Tensor, name)), None))


def _known(dtype):
    """(name, number among the types of rows or None) of torch's or numpy's dtype."""
    known = _codes.get(dtype)
    if known is None:
        name = str(dtype).rsplit(".", 1)[-1]
        known = _codes[dtype] = name, _DTYPES.get(name)
    return known


def _name_of(dtype):
    return _known(dtype)[0]


def _shape_of(tensor, what, dimensions):
    if len(tensor.shape) != dimensions:
        raise ValueError(f"{what} has {len(tensor.shape)} dimensions where {dimensions} are taken")
    return tuple(tensor.shape)


_nothing = ctypes.create_string_buffer(128)
_NOTHING = -(-ctypes.addressof(_nothing) // 64) * 64  # where a tensor without elements lies: it is given, and not NULL


def _data(tensor):
    """Its address, wherever it lies; None is none."""
    if tensor is None:
        return 0
    if hasattr(tensor, "data_ptr"):
        return tensor.data_ptr() or _NOTHING
    if hasattr(tensor, "__array_interface__"):
        return tensor.__array_interface__["data"][0]
    return weft._address(tensor)[0]


def _check_place(on_device, *tensors):
    """Memory that a GPU does not reach would end its every program, and the host's one that reads a GPU's."""
    if _weft.are_there(_ON_DEVICE if on_device else _ON_CPU, *tensors):
        return
    for tensor in tensors:
        if tensor is None:
            continue
        there = tensor.is_cuda if hasattr(tensor, "is_cuda") else hasattr(tensor, "__cuda_array_interface__")
        if there == on_device or 0 in tensor.shape or (on_device and hasattr(tensor, "is_pinned") and tensor.is_pinned()):
            continue
        places = ("the CPU's memory", "the GPU's memory")
        raise ValueError(f"a tensor of {tuple(tensor.shape)} lies in {places[there]}; calls on this group take "
                         f"{places[on_device]}: move it there, or make the group with on_device={there}")


def _array(tensor, what, kinds, count):
    """The address of a packed array of at least `count` elements of one of these types; None is none."""
    if tensor is None:
        return 0
    address = _weft.array(tensor, kinds[1], count)
    if address:
        return address
    if _name_of(tensor.dtype) not in kinds[0]:
        raise TypeError(f"{what} is of {_name_of(tensor.dtype)} where {' or '.join(kinds[0])} is taken")
    packed = tensor.is_contiguous() if hasattr(tensor, "is_contiguous") else tensor.flags["C_CONTIGUOUS"]
    size = tensor.numel() if hasattr(tensor, "numel") else tensor.size
    if not packed or size < count:
        raise ValueError(f"{what} must be contiguous and have {count} elements; it has {size}")
    return _data(tensor)


def _stream(stream):
    if stream is None or isinstance(stream, int):
        return stream or 0
    if hasattr(stream, "cuda_stream"):
        return stream.cuda_stream
    return stream.__cuda_stream__()[1]


class Rows:
    """Rows of a tensor [n][H], whose rows are packed in themselves; fp8 rows with scales, and how these lie, in words of 4
    bytes: word w of row i at scales[i * row_stride + w * word_stride]; both 0: packed."""

    __slots__ = ("tensor", "scales", "words", "count")

    def __init__(self, tensor, scales=None, scale_type=Scale.NONE, row_stride=0, word_stride=0, hidden=None):
        self.tensor, self.scales = tensor, scales
        told = _weft.rows(tensor, scales, scale_type, row_stride, word_stride)
        if told is not None:
            self.count, self.words = told
            return
        name, dtype = _known(tensor.dtype)
        if dtype is None:
            raise TypeError(f"rows of {name}: give one of {', '.join(_DTYPES)}")
        shape, width = _shape_of(tensor, "a tensor of rows", 2), _WIDTHS[dtype]
        steps = tensor.stride() if hasattr(tensor, "data_ptr") else tuple(s // width for s in tensor.strides)
        if shape[0] > 0 and shape[1] > 1 and steps[1] != 1:  # numpy gives arrays without elements any strides
            raise ValueError("the elements of a row must be packed")
        self.count = shape[0]
        pitch = steps[0] * width if shape[0] > 1 else 0
        self.words = (_data(tensor), dtype, shape[1], pitch, _data(scales), scale_type, row_stride, word_stride)


_NO_ROWS = (0,) * 8


class Group:
    """What the steps of layers share: limits and memory. Collective over the team to make and to close.

    experts          E
    tokens_max       the most tokens a rank routes in a call
    topk_max         the most choices a token
    row_bytes_max    the widest row; a multiple of 16
    rows_max         the most rows a rank receives; 0: the worst case
    drops            instead of an overflow error, drop what does not fit
    slot_tokens_max  the most tokens a rank sends in a step of a slot layout
    pairs            pairs of send and recv that may be outstanding: 1 or 2
    experts_of_rank  R counts that add up to E; None: E / R each, the first E mod R ranks one more

    first_expert and local_experts tell which this rank owns: first_expert .. first_expert + local_experts - 1.
    """

    def __init__(self, team, *, experts, tokens_max, topk_max, row_bytes_max, rows_max=0, drops=False, slot_tokens_max=0,
                 flags=0, pairs=1, experts_of_rank=None, on_device=None):
        if isinstance(team, weft.World):
            team = team.team
        self.team, self.ranks, self.rank, self.experts = team, team.pes, team.pe, experts
        self.on_device = team.world.on_device if on_device is None else on_device
        table = (ctypes.c_int * team.pes)(*experts_of_rank) if experts_of_rank is not None else None
        self._handle = _weft.ep_create(team._handle, experts, tokens_max, topk_max, row_bytes_max, rows_max, int(drops),
                                       slot_tokens_max, int(self.on_device), flags, pairs,
                                       ctypes.addressof(table) if table else None)
        if experts_of_rank is None:
            least, more = divmod(experts, team.pes)
            experts_of_rank = [least + (rank < more) for rank in range(team.pes)]
        self.first_expert, self.local_experts = sum(experts_of_rank[:team.pe]), experts_of_rank[team.pe]
        self._routes = weakref.WeakSet()
        team.world._dependents.add(self)

    def _end(self):
        for route in list(self._routes):
            route._end()
        self._handle = 0

    def route(self, topk=0, layout=Layout.RANK_MAJOR, *, alignment=0, slot_tokens=0, flags=0, sms=0, order=ORDER_RANK, memory=None):
        """A Route: who sends what to whom, in a layout. Local. memory: a tensor of route_bytes() bytes, aligned to 64, in which
        the route keeps its routing; None: the library's own."""
        return Route(self, topk, layout, alignment, slot_tokens, flags, sms, order, memory)

    def route_bytes(self, topk=0, layout=Layout.RANK_MAJOR, *, alignment=0, slot_tokens=0, flags=0, sms=0, order=ORDER_RANK):
        """The bytes of memory that such a route needs. Local."""
        return _weft.route_bytes(self._handle, topk, layout, alignment, slot_tokens, flags, sms, order)

    def mask(self, rank, alive=False):
        """Go on without a rank that is gone, or with one that is back in step. Local; all survivors mask the same."""
        _weft.ep_mask(self._handle, rank, int(alive))

    def masked(self):
        """A bytes object: for each rank 1 if it is masked."""
        out = (ctypes.c_ubyte * self.ranks)()
        _weft.ep_mask_query(self._handle, ctypes.addressof(out))
        return bytes(out)

    def close(self):
        """Collective. Its routes are gone with it."""
        if self._handle:
            for route in list(self._routes):
                route.close()
            handle, self._handle = self._handle, 0
            _weft.ep_destroy(handle)


def _destroy_route(closer, handle):
    """closer: its world's. Where both are garbage of one cycle, the world may have ended first and taken its routes with it."""
    if closer.alive:
        _weft.route_destroy(handle)


class Route:
    """The routing of a step, until the next update. Close it before its group."""

    def __init__(self, group, topk, layout, alignment, slot_tokens, flags, sms, order, memory=None):
        self._memory = memory  # alive while the route is
        self.group, self.layout = group, Layout(layout)
        self.topk = group.ranks if flags & DESTINATIONS else topk
        self.is_by_destination = bool(flags & DESTINATIONS)
        self.tokens = 0
        self._places = self.topk if layout in (Layout.RANK_MAJOR, Layout.SLOTS_SOURCE) else 1  # of a row in arrays of choices
        self._received = None  # the rows that the last dispatch had room for, on the routing that there is
        self._handle = _weft.route_create(group._handle, topk, layout, alignment, slot_tokens, flags, sms, order,
                                          _data(memory))
        self._closer = weakref.finalize(self, _destroy_route, group.team.world._closer, self._handle)
        self._closer.atexit = False
        group._routes.add(self)

    def _end(self):
        self._handle = 0
        self._closer.detach()

    def close(self):
        """Local."""
        if self._closer.alive:
            self._handle = 0
            self._closer()

    def use_sms(self, count):
        """The multiprocessors of the calls from now on, at most what the group has claimed, or its share where
        the route's sms are 0; 0: the route's sms. Of no effect on the CPU. Local."""
        _weft.route_sms(self._handle, count)

    def _choices(self, ids, weights, destinations):
        chosen = destinations if self.is_by_destination else ids
        _check_place(self.group.on_device, chosen, weights)
        tokens, width = _shape_of(chosen, "destinations" if self.is_by_destination else "ids", 2)
        if width != self.topk:
            raise ValueError(f"{width} choices a token were given on a route of {self.topk}")
        self.tokens, self._received = tokens, None
        held = _array(weights, "weights", _FLOATS, tokens * width)
        if self.is_by_destination:
            return tokens, 0, 0, held, _array(destinations, "destinations", _BYTES, tokens * width)
        return tokens, _IDS.get(_name_of(ids.dtype), 0), _array(ids, "ids", _INTS_OR_LONGS, tokens * width), held, 0

    def update(self, ids=None, weights=None, destinations=None, stream=None):
        """Agree on a new routing: ids [T][K], -1 for none, and weights [T][K] float32, or destinations [T][R] bool.
        Collective. On the host returns the Counts; on a GPU None: query() waits for them."""
        choices = self._choices(ids, weights, destinations)
        _weft.route_update(self._handle, *choices, _stream(stream))
        return None if self.group.on_device else self.query()

    def choose(self, ids=None, weights=None, destinations=None):
        """The next dispatch agrees on this routing on its way. Local; the arrays must stay until it is complete."""
        _weft.route_choose(self._handle, *self._choices(ids, weights, destinations))

    def query(self, stream=None):
        """The Counts of the last routing; waits for it. `status` is a weft.Status: OVERFLOW, RANGE or OK."""
        return Counts(*_weft.route_query(self._handle, _stream(stream)))

    def _check_tokens(self, rows):
        if rows.count < self.tokens:
            raise ValueError(f"{rows.count} rows were given where the routing has {self.tokens} tokens")

    def _check_received(self, rows, stream):
        """Rows in the order received. Waits for the routing's counts where there are fewer than the last dispatch had room for; on a GPU
        nothing is known without a dispatch."""
        room = self._received
        if rows.count >= room if room is not None else self.group.on_device:
            return
        least = room if self.layout >= Layout.SLOTS_SOURCE else self.query(stream).rows
        if least is not None and rows.count < least:
            raise ValueError(f"{rows.count} rows were given where {least} have come")

    def _bias(self, bias, rows):
        """The addresses of biases, as many as there may be."""
        if len(bias) > 2:
            raise ValueError(f"{len(bias)} biases were given where two are taken")
        for one in map(Rows, bias):
            self._check_tokens(one)
            if one.words[1:3] != rows.words[1:3] or one.words[3] not in (0, one.words[2] * _WIDTHS[one.words[1]]):
                raise ValueError(f"a bias is {tuple(one.tensor.shape)} of {_name_of(one.tensor.dtype)} where packed rows of {rows.words[2]} "
                                 f"elements of {_name_of(rows.tensor.dtype)} are taken")
        return (*map(_data, bias), 0, 0)[:2]

    @property
    def generation(self):
        """The number of the routing: one more with each."""
        return _weft.route_generation(self._handle)

    def expect(self, generation):
        """Fails with Status.STATE unless the route has that routing still."""
        _weft.route_expect(self._handle, generation)

    def counts(self):
        """Addresses of the int32 counts, in the order of weft_ep_counts; of the GPU with on_device."""
        return _weft.route_counts(self._handle)

    def tell_experts(self, memory):
        """Have rows_of_experts() know each routing from the next on: in `memory`, a tensor of 2 + 2 * local_experts int64 of the CPU,
        pinned for a group with on_device, that the route keeps. Local; while no call on the route is under way."""
        count = 2 + 2 * self.group.local_experts
        _weft.route_counts_to(self._handle, _array(memory, "memory", _LONGS, count))
        self._told, self._told_memory = (ctypes.c_int64 * count).from_address(_data(memory)), memory

    def rows_of_experts(self):
        """The rows of each local expert, without padding, of the last routing, which query() has waited for."""
        told, count = self._told, self.group.local_experts
        first = 2 if told[0] > told[1] else 2 + count  # routing g, counted from 1, is in slot g % 2
        return told[first:first + count]

    def dispatch(self, rows, out, *, weights=None, experts=None, source_rank=None, source_token=None, group_stride=0, stream=None,
                 part=0):
        """Send `rows` [T] and receive into `out` [N]. Arrays of what is received, each None where not wanted: weights and
        experts, int32 or int64 (by source [N][K], by expert [N]), source_rank and source_token [N] int32. part 1: the sending half only,
        dispatch_recv() does the rest. fp8 `out` of wider rows: they are quantised on the way."""
        _check_place(self.group.on_device, rows.tensor, rows.scales, out.tensor, out.scales, weights, experts, source_rank, source_token)
        self._check_tokens(rows)
        self._received = out.count
        _weft.dispatch(self._handle, part, _stream(stream), *rows.words, *out.words,
                       *self._arrays(out.count, weights, experts, source_rank, source_token, group_stride))

    def _arrays(self, room, weights, experts, source_rank, source_token, group_stride=0):
        """What the extension's calls take behind the rows received, which are `room`."""
        known = _weft.arrays(room, self._places, group_stride, weights, experts, source_rank, source_token)
        if known is not None:
            return known
        n = room * self._places
        return (room, _array(weights, "weights", _FLOATS, n), _array(experts, "experts", _INTS_OR_LONGS, n),
                _array(source_rank, "source_rank", _INTS, room), _array(source_token, "source_token", _INTS, room), group_stride,
                0 if experts is None else _IDS[_name_of(experts.dtype)])

    def pad(self, room, *, weights=None, experts=None, source_rank=None, source_token=None, stream=None):
        """Arrays of a dispatch, as it took them, of `room` rows, more than came: the rest gets weight 0 and -1 (weft_ep_route_pad)."""
        _check_place(self.group.on_device, weights, experts, source_rank, source_token)
        _weft.route_pad(self._handle, *_NO_ROWS, *self._arrays(room, weights, experts, source_rank, source_token), 0, _stream(stream))

    def dispatch_send(self, rows, out, **more):
        """The first half: waits for no rank. The tensors belong to the call until dispatch_recv() is complete."""
        self.dispatch(rows, out, part=1, **more)

    def dispatch_recv(self, stream=None):
        """The rest of dispatch_send(): what is received is there after it, on a GPU in the order of its stream."""
        _weft.dispatch_recv(self._handle, _stream(stream))

    def combine(self, rows, out, *, is_weighted=False, weights=None, ids=None, bias=(), values=None, values_out=None, stream=None,
                part=0):
        """Return results [N] to their sources and add them up into `out` [T]. is_weighted: by the route's weights, or by
        `weights` [T][K]; `ids` [T][K] with -1 turns choices off; bias: up to two tensors [T][H] that are added; values of
        the shape of dispatch's weights are added up to values_out [T][K]. part 1: the sending half."""
        bias = [one for one in bias if one is not None]
        _check_place(self.group.on_device, rows.tensor, out.tensor, weights, ids, *bias, values, values_out)
        self._check_received(rows, stream)
        self._check_tokens(out)
        _weft.combine(self._handle, part, _stream(stream), *rows.words, *out.words, WEIGHTED if is_weighted else 0,
                      _array(weights, "weights", _FLOATS, self.tokens * self.topk),
                      _array(ids, "ids", _INTS_OR_LONGS, self.tokens * self.topk),
                      _IDS.get(_name_of(ids.dtype), 0) if ids is not None else 0,
                      *(self._bias(bias, rows) if bias else (0, 0)),
                      _array(values, "values", _FLOATS, rows.count * self._places),
                      _array(values_out, "values_out", _FLOATS, self.tokens * self.topk))

    def combine_send(self, rows, out, **more):
        """The first half of combine(): waits for no rank. The tensors belong to the call until combine_recv() is complete."""
        self.combine(rows, out, part=1, **more)

    def combine_recv(self, stream=None):
        """The rest of combine_send(): the sums are there after it."""
        _weft.combine_recv(self._handle, _stream(stream))

    def dispatch_bwd(self, grad_received, grad_in, grad_weights_received=None, grad_weights=None, stream=None):
        """Gradients of received rows [N] become gradients of tokens [T]; those of received weights [T][K] likewise."""
        _check_place(self.group.on_device, grad_received.tensor, grad_in.tensor, grad_weights_received, grad_weights)
        self._check_received(grad_received, stream)
        self._check_tokens(grad_in)
        _weft.dispatch_bwd(self._handle, _stream(stream), *grad_received.words, *grad_in.words,
                           _array(grad_weights_received, "grad_weights_received", _FLOATS, grad_received.count * self._places),
                           _array(grad_weights, "grad_weights", _FLOATS, self.tokens * self.topk))

    def combine_bwd(self, grad_out, grad_rows, rows=None, grad_weights=None, is_weighted=False, stream=None):
        """Gradients of combined rows [T] become gradients of what was combined [N]; with `rows`, what combine was given,
        also of the weights [T][K]."""
        _check_place(self.group.on_device, grad_out.tensor, grad_rows.tensor, rows.tensor if rows is not None else None, grad_weights)
        self._check_tokens(grad_out)
        for one in (grad_rows, rows):
            if one is not None:
                self._check_received(one, stream)
        _weft.combine_bwd(self._handle, _stream(stream), *grad_out.words, *(rows.words if rows is not None else _NO_ROWS),
                          *grad_rows.words, _array(grad_weights, "grad_weights", _FLOATS, self.tokens * self.topk),
                          WEIGHTED if is_weighted else 0)
