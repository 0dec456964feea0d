import { mutate } from './mutate.mjs'
import { createOrderly, createRequest, createUpgrade } from './requests.mjs'

// A connection is { from, times, steps }. Steps: { write, times } | { dribble, bytes, everyMs } | { pause } | 'stopReading' |
// 'resumeReading' | 'end' | 'reset' | 'close' | { untilClosed, tokens }. Only the last can fail: the connection must be closed within
// that time, and if tokens are given, exactly their answers must have come, in order.

const mostAddresses = 60
/** How long one call may take with the timeouts of the fuzzed gateway, on a busy machine. */
const answerMs = 2500

/** One of the addresses that attackers call from. */
export const address = random => `127.0.1.${random.int(1, mostAddresses)}`

/** How a caller leaves who does not wait for answers. */
export const departure = random => [
  ...(random.chance(0.6) ? [{ pause: random.int(0, 200) }] : []),
  random.pick(['end', 'reset', 'close', 'close']),
]

const patience = requests => [{ untilClosed: 3000 + answerMs * requests }]

/** Requests one behind the other without waiting; with `patient`, all are whole and the last closes the connection. */
export function pipeline(random, { answers, length, patient }) {
  // one request that cannot be read ends a connection, so most pipelines have none
  const plain = patient || random.chance(0.7)
  const requests = random.list(length, index => {
    const last = patient && index === length - 1
    const request = createRequest(random, { answers, plain, last })
    const isMutated = !plain && random.chance(0.15)
    return { ...request, isMutated, text: isMutated ? mutate(random, request.text) : request.text }
  })
  const pieces = random.chance(0.7) ? [requests.map(({ text }) => text).join('')] : requests.map(({ text }) => text)
  return {
    requests: length,
    mutated: requests.filter(({ isMutated }) => isMutated).length,
    steps: [...pieces.map(write => ({ write })), ...(patient ? patience(length) : departure(random))],
  }
}

/** The gateway reads no more than a mebibyte of calls behind an offer of another protocol that waits for its turn. */
const maxOrderly = 900_000

/** Requests one behind the other, cut anywhere, each of which must get its own answer in its turn. */
export function orderly(random) {
  let length = random.pick([1, 2, 3, 5, 10, 30])
  const tokens = random.list(length, index => `${random.int(0, 1e9)}-${index}`)
  const write = () =>
    tokens.map((token, index) => createOrderly(random, { token, last: index === length - 1 })).join('')
  let text = write()
  while (text.length > maxOrderly) {
    length = Math.ceil(length / 2)
    tokens.length = length
    text = write()
  }
  const steps = []
  while (text !== '') {
    const cut = random.chance(0.3) ? text.length : random.int(1, Math.min(text.length, 5000))
    steps.push({ write: text.slice(0, cut) }, ...(random.chance(0.2) ? [{ pause: random.int(0, 20) }] : []))
    text = text.slice(cut)
  }
  return { requests: length, steps: [...steps, { untilClosed: 5000 + 200 * length, tokens }] }
}

/** An upgrade, alone or behind other requests, and bytes that may follow it. */
export function upgrade(random, { answers }) {
  const before = random.list(
    random.pick([0, 0, 1, 1, 2, 5]),
    () => createRequest(random, { answers, body: false }).text,
  )
  const after = random.weighted([
    [3, ''],
    [2, '\x81\x02ok'.repeat(random.int(1, 50))],
    [1, random.bytes(random.int(1, 2000))],
    [1, createRequest(random, { answers }).text],
    [1, createUpgrade(random, { answers }).text],
    [1, 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
  ])
  const text = [...before, createUpgrade(random, { answers }).text].join('')
  const isMutated = random.chance(0.1)
  const first = isMutated ? mutate(random, text) : text
  const steps = random.chance(0.5) ? [{ write: first + after }] : [{ write: first }, { pause: 40 }, { write: after }]
  return {
    requests: before.length + 1,
    mutated: isMutated ? 1 : 0,
    steps: [...steps, { pause: random.int(0, 500) }, ...departure(random)],
  }
}

/** Sends a part of a request, at random speed, and leaves. */
export function leaver(random, { answers }) {
  const { text } = createRequest(random, { answers, plain: random.chance(0.7) })
  const part = text.slice(0, random.int(1, text.length))
  const sent = random.chance(0.5)
    ? { write: part }
    : { dribble: part, bytes: Math.ceil(part.length / random.int(2, 40)), everyMs: random.int(1, 30) }
  return { requests: 1, aborted: 1, steps: [sent, ...departure(random)] }
}

/** One whole request whose sender waits for the answer. */
export function patient(random, { answers }) {
  const odd = random.chance(0.3)
  const request = createRequest(random, { answers, plain: !odd, last: true })
  if (!request.whole) return leaver(random, { answers })
  const sent =
    request.sent === '' || random.chance(0.5)
      ? [{ write: request.text }]
      : [{ write: request.head }, { pause: random.int(1, 100) }, { write: request.sent }]
  return { requests: 1, steps: [...sent, ...patience(1)] }
}

/** Several requests on a kept connection, with pauses for the answers. */
export function keptAlive(random, { answers }) {
  const requests = random.list(
    random.int(2, 8),
    () => createRequest(random, { answers, plain: random.chance(0.6) }).text,
  )
  const steps = requests.flatMap(write => [{ write }, { pause: random.int(5, 200) }])
  return { requests: requests.length, steps: [...steps, ...departure(random)] }
}

/** A caller who is slow to read, to send its head, or to send its body. */
export function slow(random, { answers, holdMs = random.int(300, 1500), prefix }) {
  const get = createRequest(random, { answers, plain: true, body: false, prefix })
  const post = createRequest(random, { answers, plain: true, body: true, prefix })
  const steps = random.pick([
    // reads nothing
    [{ write: get.text }, 'stopReading', { pause: holdMs }],
    // sends its head slowly
    [{ dribble: get.head.slice(0, 60), bytes: 1, everyMs: Math.max(1, Math.floor(holdMs / 60)) }],
    // sends its body slowly, and never all of it
    [
      { write: post.head.replace(/content-length: \d+/i, 'Content-Length: 1000000') },
      { dribble: '1\r\nb\r\n'.repeat(10), bytes: 6, everyMs: Math.floor(holdMs / 10) },
    ],
  ])
  return { requests: 1, slow: 1, steps: [...steps, random.pick(['reset', 'close', 'end'])] }
}
