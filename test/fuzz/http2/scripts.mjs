import { mutate } from '../plan/mutate.mjs'
import { departure } from '../plan/scripts.mjs'
import { floodFrame, walkFrames } from './frame-walk.mjs'
import { frame, preface, settings } from './frames.mjs'

/** How a connection begins: most callers choose windows of their own, and some never read as fast as the service sends. */
const opening = random =>
  preface +
  frame('settings', 0, 0, random.chance(0.5) ? '' : settings([[4, random.pick([0, 1, 1000, 65_535, 2 ** 31 - 1])]])) +
  (random.chance(0.3) ? frame('windowUpdate', 0, 0, '\x7f\xfe\0\0') : '')

/** The bytes in pieces that are cut anywhere, or after each frame. */
function inPieces(random, frames) {
  const text = frames.join('')
  const way = random.int(0, 3)
  if (way === 0 || text === '') return [{ write: text }]
  if (way === 1) return frames.map(write => ({ write }))
  const steps = []
  for (let at = 0; at < text.length; ) {
    const end = at + random.int(1, way === 2 ? 200 : 20_000)
    steps.push({ write: text.slice(at, end) })
    if (random.chance(0.2)) steps.push({ pause: random.int(0, 20) })
    at = end
  }
  return steps
}

/** Frames in any order, most of which are lawful. */
export function frameWalk(random, { answers }) {
  const length = random.pick([2, 5, 20, 60, 150])
  const { frames, calls } = walkFrames(random, { answers, length, faultEvery: random.pick([3, 10, 30, 1e9]) })
  const stops = random.chance(0.15) ? ['stopReading'] : []
  return {
    requests: calls,
    steps: [...stops, ...inPieces(random, [opening(random), ...frames]), ...departure(random)],
  }
}

/** The same with faults in its bytes. */
export function mutatedWalk(random, { answers }) {
  const { frames, calls } = walkFrames(random, { answers, length: random.int(1, 15), faultEvery: 50 })
  const text = frames.join('')
  const begin = random.chance(0.9) ? opening(random) : mutate(random, opening(random))
  const at = random.int(0, text.length)
  return {
    requests: calls,
    mutated: 1,
    steps: [{ write: begin + text.slice(0, at) + mutate(random, text.slice(at)) }, ...departure(random)],
  }
}

/** One frame, hundreds of times. */
export function frameFlood(random, { answers }) {
  const write = floodFrame(random, { answers })
  const times = Math.min(random.pick([100, 1000, 10_000]), Math.ceil(2_000_000 / write.length))
  return {
    requests: 1,
    mutated: times,
    steps: [{ write: opening(random) }, { write, times }, { pause: random.int(0, 300) }, ...departure(random)],
  }
}

/** Calls that servers must accept, side by side. */
export function orderlyCalls(random) {
  const length = random.pick([1, 5, 20, 100])
  const calls = random.list(length, index => {
    const method = random.pick(['GET', 'GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'QUERY'])
    const body = ['POST', 'PUT', 'QUERY'].includes(method) ? 'b'.repeat(random.pick([0, 1, 1000, 5000])) : ''
    return {
      path: `/good/${random.int(1, 9)}`,
      method,
      body,
      token: `${random.int(0, 1e9)}-${index}`,
      timeoutMs: 15_000,
    }
  })
  return { requests: length, steps: [], calls }
}

/** After what can only be an error of the connection, the gateway must end it. */
export function fatal(random, { answers }) {
  const { frames } = walkFrames(random, { answers, length: random.int(0, 5), faultEvery: 1e9 })
  const error = random.pick([
    frame('data', 0, 0, 'x'),
    frame('settings', 0, 0, 'xxxxx'),
    frame('ping', 0, 0, 'short'),
    frame('windowUpdate', 0, 0, '\0\0\0\0'),
    frame('continuation', 4, 1, ''),
    frame('headers', 5, 0, ''),
    frame('headers', 5, 2, '\x82'),
    frame('headers', 5, 1001, '\xff\xff\xff\xff\xff\xff\xff\xff\xff'),
    frame('pushPromise', 4, 1, '\0\0\0\x02'),
    '\xff'.repeat(100),
  ])
  return {
    requests: 1,
    mutated: 1,
    steps: [{ write: opening(random) + frames.join('') + error }, { untilClosed: 8000 }],
  }
}
