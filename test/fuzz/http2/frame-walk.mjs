import { flags, frame, number, settings } from './frames.mjs'
import { brokenBlock, oddBlock, plainBlock, trailerBlock } from './header-blocks.mjs'

const codes = [0, 1, 2, 5, 7, 8, 11, 13, 14, 255, 2 ** 31, 2 ** 32 - 1]
const increments = [0, 1, 100, 65_535, 2 ** 30, 2 ** 31 - 1, 2 ** 31, 2 ** 32 - 1]
const settingValues = [
  [1, [0, 1, 4096, 2 ** 31, 2 ** 32 - 1]],
  [2, [0, 1, 2]],
  [3, [0, 1, 100, 2 ** 32 - 1]],
  [4, [0, 1, 10, 65_535, 2 ** 31 - 1, 2 ** 31]],
  [5, [0, 16_383, 16_384, 100_000, 2 ** 24 - 1, 2 ** 24]],
  [6, [0, 1, 100, 2 ** 32 - 1]],
  [8, [0, 1, 2]],
  [9, [0, 1, 2]],
  [0x1234, [7]],
]

/** Any stream: one that the walk has opened, most of the time the last. */
const anyStream = (random, { next }) =>
  random.weighted([
    [6, Math.max(1, next - 2)],
    [6, 2 * random.int(0, Math.max(0, (next - 3) / 2)) + 1],
    [1, 0],
    [1, random.int(0, 20)],
    [1, random.pick([2 ** 31 - 1, 2 ** 31, 2 ** 32 - 1])],
  ])

function headerFrames(random, stream, { block, ends = random.chance(0.6) }) {
  let flag = ends ? flags.endStream : 0
  let payload = block
  if (random.chance(0.1)) {
    flag |= flags.priority
    payload = number(random.pick([0, stream, 3, 2 ** 31 + 1])) + number(random.int(0, 255), 1) + payload
  }
  if (random.chance(0.1)) {
    const padding = random.int(0, 255)
    flag |= flags.padded
    payload = number(padding, 1) + payload + '\0'.repeat(random.chance(0.8) ? padding : random.int(0, padding))
  }
  if (random.chance(0.85)) return frame('headers', flag | flags.endHeaders, stream, payload)
  const pieces = random.list(random.pick([1, 2, 5, 30]), () => random.int(0, payload.length)).sort((a, b) => a - b)
  const cuts = [0, ...pieces, payload.length]
  const parts = cuts.slice(1).map((end, at) => payload.slice(cuts[at], end))
  const isWhole = random.chance(0.9)
  return parts
    .map((part, at) => {
      const last = isWhole && at === parts.length - 1 ? flags.endHeaders : 0
      return at === 0 ? frame('headers', flag, stream, part) : frame('continuation', last, stream, part)
    })
    .join('')
}

function open(random, walk, options) {
  const stream = walk.next
  walk.next += 2
  return headerFrames(random, stream, options)
}

const call = (random, walk) => open(random, walk, { block: plainBlock(random, walk) })

/** A call with a body of its own, in pieces, which may end by trailers. */
function upload(random, walk) {
  const stream = walk.next
  const pieces = random.list(random.int(0, 4), () => 'b'.repeat(random.pick([0, 1, 100, 5000, 16_384])))
  const head = open(random, walk, { block: plainBlock(random, { ...walk, method: 'POST' }), ends: false })
  const body = pieces.map(piece => frame('data', 0, stream, piece)).join('')
  const end = random.chance(0.5)
    ? frame('data', flags.endStream, stream)
    : headerFrames(random, stream, { block: trailerBlock(random), ends: random.chance(0.9) })
  return head + body + (random.chance(0.8) ? end : '')
}

const reset = (random, walk) => frame('reset', 0, anyStream(random, walk), number(random.pick(codes)))

/** What a caller that keeps to the rules may send, in any order. */
const lawful = [
  [10, call],
  [4, upload],
  [3, reset],
  [2, (random, walk) => call(random, walk) + frame('reset', 0, walk.next - 2, number(8))],
  [2, random => frame('ping', random.pick([0, 0, flags.ack]), 0, random.bytes(8))],
  [2, (random, walk) => frame('windowUpdate', 0, random.pick([0, walk.next - 2]), number(random.int(1, 100_000)))],
  [1, random => frame('settings', 0, 0, settings([[4, random.pick([0, 1, 100, 65_535, 1_000_000])]]))],
  [1, () => frame('settings', flags.ack, 0)],
  [1, (_random, walk) => frame('priority', 0, walk.next, `${number(0)}\x10`)],
  [1, random => frame(random.int(17, 255), random.int(0, 255), 0, random.bytes(random.int(0, 50)))],
]

/** What ends a stream or the connection, or is to be ignored. */
const unlawful = [
  [4, (random, walk) => open(random, walk, { block: oddBlock(random, walk) })],
  [1, (random, walk) => open(random, walk, { block: brokenBlock(random) })],
  [2, (random, walk) => headerFrames(random, anyStream(random, walk), { block: plainBlock(random, walk) })],
  [2, (random, walk) => headerFrames(random, anyStream(random, walk), { block: trailerBlock(random) })],
  [3, (random, walk) => data(random, anyStream(random, walk))],
  [2, reset],
  [1, random => frame('reset', 0, random.int(0, 9), random.bytes(random.int(0, 8)))],
  [2, random => frame('settings', 0, 0, settings(random.list(random.pick([1, 1, 2, 40]), () => setting(random))))],
  [1, random => frame('settings', random.int(0, 255), random.int(0, 2), random.bytes(random.int(0, 13)))],
  [1, random => frame('ping', random.int(0, 255), random.int(0, 2), random.bytes(random.pick([0, 7, 8, 8, 9])))],
  [2, (random, walk) => goaway(random, walk)],
  [2, (random, walk) => frame('windowUpdate', 0, anyStream(random, walk), number(random.pick(increments)))],
  [1, (random, walk) => frame('continuation', random.int(0, 255), anyStream(random, walk), trailerBlock(random))],
  [1, (random, walk) => frame('priority', 0, anyStream(random, walk), `${number(anyStream(random, walk))}\0`)],
  [1, (random, walk) => frame('pushPromise', 4, anyStream(random, walk), number(2) + plainBlock(random, walk))],
  [1, random => frame(random.pick(['altSvc', 'origin', 'priorityUpdate']), 0, 0, random.bytes(random.int(0, 30)))],
  [1, random => random.bytes(random.int(1, 60))],
]

const setting = random => {
  const [id, values] = random.pick(settingValues)
  return [id, random.pick(values)]
}

const goaway = (random, walk) =>
  frame('goaway', 0, 0, number(anyStream(random, walk)) + number(random.pick(codes)) + random.bytes(random.int(0, 20)))

function data(random, stream) {
  const payload = 'd'.repeat(random.pick([0, 1, 100, 16_384, 16_385]))
  const end = random.chance(0.4) ? flags.endStream : 0
  if (random.chance(0.8)) return frame('data', end, stream, payload)
  const padding = random.int(0, 255)
  return frame('data', end | flags.padded, stream, number(padding, 1) + payload.slice(0, 300) + '\0'.repeat(padding))
}

/** So many frames, of which one in `faultEvery` is not as it should be. */
export function walkFrames(random, { answers, length, faultEvery }) {
  const walk = { next: 1, answers }
  const frames = random.list(length, () =>
    random.weighted(random.chance(1 / faultEvery) ? unlawful : lawful)(random, walk),
  )
  return { frames, calls: (walk.next - 1) / 2 }
}

/** One frame of each kind, for floods. */
export function floodFrame(random, { answers }) {
  const walk = { next: 1, answers }
  return random.weighted(random.chance(0.5) ? unlawful : lawful)(random, walk)
}
