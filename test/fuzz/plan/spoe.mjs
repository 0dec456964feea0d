import { number } from '../http2/frames.mjs'
import { departure } from './scripts.mjs'

const string = text => number(text.length, 1) + text
const frame = (type, payload) => {
  const body = number(type, 1) + number(1) + number(1, 1) + number(1, 1) + payload
  return number(body.length) + body
}
const pair = (name, value) => `${string(name)}\x08${string(value)}`
/** Returns the first frame of HAProxy. */
export const spoeHello = () =>
  frame(
    1,
    pair('supported-versions', '2.0') +
      string('max-frame-size') +
      '\x03\xf0\xcc\x0f' +
      pair('capabilities', 'pipelining'),
  )
const notify = random =>
  frame(
    3,
    string('check') +
      number(random.int(0, 5), 1) +
      pair('path', '/a') +
      pair('src', '127.0.0.1') +
      pair('method', 'GET'),
  )

/** Frames of HAProxy's agent protocol, of which some are cut, mutated or of another type. */
export function spoeFrames(random) {
  const frames = random.list(random.pick([1, 3, 20, 200]), () =>
    random.weighted([
      [5, spoeHello],
      [8, () => notify(random)],
      [2, () => frame(2, pair('status-code', '0'))],
      [2, () => frame(random.int(0, 255), random.bytes(random.int(0, 60)))],
      [1, () => number(random.pick([0, 1, 3, 65_536, 65_537, 2 ** 31, 2 ** 32 - 1])) + random.bytes(random.int(0, 30))],
      [2, () => frame(3, random.bytes(random.int(0, 200)))],
      [1, () => random.bytes(random.int(1, 100))],
    ])(),
  )
  const begin = random.chance(0.7) ? [spoeHello()] : []
  const text = [...begin, ...frames].join('')
  const cut = random.chance(0.5) ? text.length : random.int(1, text.length)
  return {
    requests: frames.length,
    steps: [
      { write: text.slice(0, cut) },
      { pause: random.int(0, 20) },
      { write: text.slice(cut) },
      ...departure(random),
    ],
  }
}
