import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { setImmediate as nextTurn } from 'node:timers/promises'
import fc from 'fast-check'
import type { Dispatcher } from 'undici'
import { afterEach, describe, expect, test } from 'vitest'
import { failureOf } from '../../forwarding/failure.ts'
import { textsOf } from '../../forwarding/headers/end-to-end-headers.ts'
import { isOfTheConnection } from '../../http/message-headers.ts'
import { ServiceClient } from './service-client.ts'
import type { WholeAnswerHandler } from './short-exchange.ts'

/** What a service does with a call: writes these pieces, each in a turn of its own, and then ends the connection or not. */
interface Script {
  readonly pieces: readonly string[]
  readonly end: 'keep' | 'close' | 'reset'
}

/** What became of a call. */
interface Outcome {
  readonly how: string
  readonly isWhole: boolean
}

const ok = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'
const closing: (() => unknown)[] = []
afterEach(() => {
  for (const close of closing.splice(0).reverse()) close()
})

/** A service that follows one script per call, on whichever connection it comes; the heads that it got. */
async function serve(scripts: readonly Script[], options: { maxHeaderSize?: number } = {}) {
  const heads: string[] = []
  const sockets: Socket[] = []
  const server = createServer({ noDelay: true }, socket => {
    let received = ''
    sockets.push(socket)
    socket.on('error', () => {})
    socket.on('data', async bytes => {
      received += bytes.toString('latin1')
      if (!received.endsWith('\r\n\r\n')) return
      const script = scripts[heads.push(received) - 1]
      received = ''
      if (script) await follow(script, socket)
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const client = new ServiceClient(origin, { pipelining: 1, connect: {}, ...options })
  closing.push(
    () => server.close(),
    () => void client.destroy().catch(() => {}),
    () => {
      for (const socket of sockets) socket.destroy()
    },
  )
  return { client, heads, sockets }
}

async function follow({ pieces, end }: Script, socket: Socket): Promise<void> {
  for (const piece of pieces) {
    socket.write(piece, 'latin1')
    await nextTurn()
  }
  if (end === 'close') socket.end()
  else if (end === 'reset') socket.resetAndDestroy()
}

type Options = Partial<Dispatcher.DispatchOptions>

/** One call, by undici alone unless it may be short. */
function call(client: ServiceClient, kind: 'short' | 'undici', options: Options = {}): Promise<Outcome> {
  return new Promise(resolve => {
    let head = ''
    let body = ''
    let hasAnswered = false
    const handler: Dispatcher.DispatchHandler = {
      onConnect: () => client.expectAnswer({ trailers: () => ({}) }),
      onResponseStarted: () => {
        hasAnswered = true
      },
      onHeaders: (status, received, _resume, reason) => {
        head = describeHead(status, reason, textsOf(received as Buffer[]))
        return true
      },
      onData: piece => {
        body += piece.toString('latin1')
        return true
      },
      onComplete: () => resolve({ how: `${head}${body}`, isWhole: false }),
      onError: error => {
        const { status, mayRetry } = failureOf(error, client.answers.end() || hasAnswered)
        resolve({ how: `${head}failed with ${status}, ${mayRetry ? 'may' : 'must not'} be sent again`, isWhole: false })
      },
    }
    const whole: WholeAnswerHandler = {
      ...handler,
      onWholeAnswer: ({ status, reason, headers, body: bytes }) =>
        resolve({ how: `${describeHead(status, reason, headers)}${bytes.toString('latin1')}`, isWhole: true }),
    }
    client.dispatch(
      { path: '/a?b', method: 'GET', headers: [], body: null, headersTimeout: 5000, reset: false, ...options } as never,
      kind === 'short' ? whole : handler,
    )
  })
}

function describeHead(status: number, reason: string, texts: readonly string[]): string {
  const lines = texts.flatMap((name, at) =>
    at % 2 === 1 || isOfTheConnection(name) ? [] : [`${name}: ${texts[at + 1]}`],
  )
  return `${[`${status} ${reason}`, ...lines].join('\n')}\n\n`
}

/** Two calls on a connection that has carried one before, and a last one; what became of them and what the service got. */
async function exchange(kind: 'short' | 'undici', script: Script, options: Options = {}) {
  const plain: Script = { pieces: [ok], end: 'keep' }
  const { client, heads, sockets } = await serve([plain, script, plain])
  await call(client, 'undici')
  // undici ends the first call in a turn of its own
  await nextTurn()
  const second = await call(client, kind, options)
  const wasWhole = second.isWhole
  await nextTurn()
  const third = client.destroyed ? undefined : await call(client, 'undici')
  const connections = sockets.length
  for (const close of closing.splice(0).reverse()) close()
  return {
    wasWhole,
    result: {
      second: second.how,
      third: third?.how,
      heads: heads.map(head => head.replace(/:\d+\r/, ':PORT\r')),
      connections,
    },
  }
}

/** The parts of answers, common ones first. */
const lines = [
  ...['HTTP/1.1 200 OK', 'HTTP/1.1 404 Not Found', 'HTTP/1.1 500 ', 'HTTP/1.1 206', 'HTTP/1.0 200 OK', 'ICY 200 OK'],
  ...['HTTP/1.1 204 No', 'HTTP/1.1 304 Not', 'HTTP/1.1 103 Hints', 'HTTP/1.1 2000 OK', 'HTTP/1.1 200 \xe4\x01'],
]
const headers = [
  ...['Content-Type: text/plain', 'X-A:1', 'Set-Cookie: a=b; Path=/', 'Keep-Alive: timeout=5', 'X-B: \xe4\xff'],
  ...['X-A:  two', 'X-Empty:', 'X-Tab:\ta\tb', 'X-Space: a ', 'X Y: 1', 'X_Y: 1', 'X-Y : 1', ' folded: 1', ': none'],
  ...['X-Zero: a\x00b', 'X-Cr: a\rb', 'no colon', 'Connection: keep-alive', 'Connection: close', 'Connection: X-A'],
  ...['Transfer-Encoding: chunked', 'Trailer: x-sum', 'Upgrade: websocket', 'Proxy-Connection: close'],
  ...['Content-Length: 2', 'Content-Length: 02', 'Content-Length: 0', 'transfer-encoding: gzip'],
]
const lengths = [
  ...['Content-Length: 2', '', 'content-length:2', 'Content-Length: 3', 'Content-Length: +2', 'Content-Length: 2, 2'],
  ...['Content-Length: 0x2', 'Content-Length: 99999999999999999999'],
]
const ends = ['\r\n', '\n']
const bodies = ['ok', '', 'o', 'okay', '2\r\nok\r\n0\r\n\r\n', `ok${ok}`]

function answerOf(line: string, some: readonly string[], length: string, end: string, body: string): string {
  return `${[line, ...some, length].filter(Boolean).join(end)}${end}${end}${body}`
}

/** Answers that differ from a plain one in one part. */
const deviating = [
  ...lines.map(line => answerOf(line, [], lengths[0]!, '\r\n', 'ok')),
  ...headers.map(header => answerOf(lines[0]!, [header], lengths[0]!, '\r\n', 'ok')),
  ...lengths.flatMap(length => bodies.map(body => answerOf(lines[0]!, [], length, '\r\n', body))),
  answerOf(lines[0]!, ['X-A: 1'], lengths[0]!, '\n', 'ok'),
]

/** Answers that are plain for the most part, so that both ways are taken. */
const answer = fc
  .tuple(
    mostlyFirst(lines, 1),
    fc.oneof(
      fc.array(mostlyFirst(headers, 5), { maxLength: 3 }),
      fc.array(fc.constantFrom(...headers), { maxLength: 3 }),
    ),
    ...([mostlyFirst(lengths, 1), mostlyFirst(ends, 1), mostlyFirst(bodies, 1)] as const),
  )
  .map(parts => answerOf(...parts))

function mostlyFirst(all: readonly string[], common: number): fc.Arbitrary<string> {
  return fc.oneof(
    { weight: 4, arbitrary: fc.constantFrom(...all.slice(0, common)) },
    { weight: 1, arbitrary: fc.constantFrom(...all) },
  )
}

const script = fc
  .record({
    text: answer,
    cuts: fc.array(fc.nat(120), { maxLength: 2 }),
    end: fc.constantFrom<Script['end']>('keep', 'keep', 'close', 'reset'),
    isCut: fc.boolean(),
  })
  .map(({ text, cuts, end, isCut }): Script => {
    const at = isCut ? [0, ...cuts.map(cut => cut % text.length).sort((a, b) => a - b)] : [0]
    const pieces = at.map((from, index) => text.slice(from, at[index + 1])).filter(Boolean)
    // an answer that is never complete would be awaited
    return { pieces, end: end === 'keep' && !isPlain(text) ? 'close' : end }
  })

function isPlain(text: string): boolean {
  const plain =
    /^HTTP\/1\.1 200 OK\r\n(?:(?:Content-Type|X-A|Set-Cookie|X-B|Keep-Alive):[^\r\n]*\r\n)*Content-Length: 2\r\n\r\nok$/
  return plain.test(text)
}

describe('a call that may be short', () => {
  test('a short call ends as with undici, for any answer and any end of the connection', async () => {
    let wholes = 0
    let others = 0
    await fc.assert(
      fc.asyncProperty(script, async script => {
        // a reset may overtake what was sent before it
        fc.pre(script.end !== 'reset' || script.pieces.length === 0)
        const [short, undici] = [await exchange('short', script), await exchange('undici', script)]
        if (short.wasWhole) wholes++
        else others++
        expect(short.result).toEqual(undici.result)
      }),
      { numRuns: 60 },
    )
    expect(wholes).toBeGreaterThan(0)
    expect(others).toBeGreaterThan(0)
  }, 60_000)

  test('a short call ends as with undici if one part of its answer is unusual', async () => {
    let wholes = 0
    for (const text of deviating) {
      const script: Script = { pieces: [text], end: isPlain(text) ? 'keep' : 'close' }
      const [short, undici] = [await exchange('short', script), await exchange('undici', script)]
      if (short.wasWhole) wholes++
      expect([text, short.result]).toEqual([text, undici.result])
    }
    expect(wholes).toBeGreaterThan(6)
  }, 60_000)

  test.each<[string, Script]>([
    ['an end', { pieces: [], end: 'close' }],
    ['a reset', { pieces: [], end: 'reset' }],
  ])('a short call is not sent twice if %s of the connection comes instead of an answer', async (_, script) => {
    const [short, undici] = [await exchange('short', script), await exchange('undici', script)]
    expect(short.result).toEqual(undici.result)
    expect(short.result.second).toBe('failed with 502, may be sent again')
    expect(short.result.heads).toHaveLength(3)
  })

  test('a short call is written as undici writes it, or by undici', async () => {
    const name = fc.constantFrom(
      'host',
      'accept',
      'x-a',
      'cookie',
      'x_odd',
      'X-Upper',
      'content-type',
      'te',
      'bad name',
    )
    const value = fc.oneof(fc.constantFrom('a', 'a b', '\xe4', 'a\r\nb: c', 'x\u0100', ''), fc.string({ maxLength: 8 }))
    const options = fc.record({
      path: fc.constantFrom('/', '/a%20b?c=d', '/ü', '/a b', '*', '/\u0100'),
      method: fc.constantFrom<Dispatcher.HttpMethod>('GET', 'GET', 'GET', 'DELETE', 'OPTIONS', 'PUT', 'POST'),
      headers: fc.array(fc.tuple(name, value), { maxLength: 3 }).map(pairs => pairs.flat()),
    })
    await fc.assert(
      fc.asyncProperty(options, async options => {
        const script: Script = { pieces: [ok], end: 'keep' }
        const [short, undici] = [await exchange('short', script, options), await exchange('undici', script, options)]
        expect(short.result).toEqual(undici.result)
      }),
      { numRuns: 40 },
    )
  }, 60_000)

  test('a short call is not answered by bytes that the service sent before it', async () => {
    const extra = 'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nextra'
    const { client, sockets } = await serve([
      { pieces: [ok], end: 'keep' },
      { pieces: [ok], end: 'keep' },
    ])
    await call(client, 'undici')
    await nextTurn()
    sockets[0]!.write(extra)
    // the bytes are in the socket before the call is sent
    const until = Date.now() + 5
    while (Date.now() < until);
    expect((await call(client, 'short')).how).toMatch(/\n\nok$/)
  })

  test('a short call that takes long is handed over to undici with the rest of its time', async () => {
    const { client, heads, sockets } = await serve([{ pieces: [ok], end: 'keep' }])
    await call(client, 'undici')
    await nextTurn()
    const late = call(client, 'short', { headersTimeout: 2000 })
    const slow = () => heads.length < 2
    while (slow()) await nextTurn()
    client.check(performance.now() + 1900)
    expect((await late).how).toBe('failed with 504, must not be sent again')
    expect(sockets).toHaveLength(1)
  })

  test('a short call gets its answer after it was handed over to undici', async () => {
    const { client, heads, sockets } = await serve([{ pieces: [ok], end: 'keep' }])
    await call(client, 'undici')
    await nextTurn()
    const late = call(client, 'short')
    while (heads.length < 2) await nextTurn()
    client.check(performance.now() + 1001)
    sockets[0]!.write(ok)
    expect(await late).toEqual({ how: '200 OK\ncontent-length: 2\n\nok', isWhole: false })
    expect(heads).toHaveLength(2)
  })

  test.each(['before its answer', 'while it is handed over'])(
    'a call that is aborted %s ends with the error of the abort, and is not sent again',
    async when => {
      const { client, heads } = await serve([{ pieces: [ok], end: 'keep' }])
      await call(client, 'undici')
      await nextTurn()
      const error = await new Promise<Error>(resolve => {
        let abort: ((error?: Error) => void) | undefined
        let isBrokenOff = false
        const breakOff = async (): Promise<void> => {
          if (isBrokenOff) return
          isBrokenOff = true
          while (heads.length < 2) await nextTurn()
          if (when === 'while it is handed over') client.check(performance.now() + 1001)
          abort?.(new Error('broken off'))
        }
        const options = { path: '/', method: 'GET', headers: [], body: null, headersTimeout: 0, reset: false }
        client.dispatch(
          options as never,
          {
            onConnect: (given: (error?: Error) => void) => {
              abort = given
              void breakOff()
            },
            onHeaders: () => true,
            onData: () => true,
            onComplete: () => resolve(new Error('answered')),
            onWholeAnswer: () => resolve(new Error('answered')),
            onError: resolve,
          } as WholeAnswerHandler,
        )
      })
      expect(error.message).toBe('broken off')
      await nextTurn()
      expect(heads).toHaveLength(2)
    },
  )

  test('a short call is awaited before its connection is closed', async () => {
    const { client, heads, sockets } = await serve([{ pieces: [ok], end: 'keep' }])
    await call(client, 'undici')
    await nextTurn()
    const last = call(client, 'short')
    const closed = client.settled().then(() => client.close())
    while (heads.length < 2) await nextTurn()
    sockets[0]!.write(ok)
    expect((await last).isWhole).toBe(true)
    await closed
  })

  test('short calls are left to undici for a while after an answer of another form', async () => {
    const chunked = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n'
    const plain: Script = { pieces: [ok], end: 'keep' }
    const { client } = await serve([plain, { pieces: [chunked], end: 'keep' }, ...Array(70).fill(plain)])
    await call(client, 'undici')
    const wholes: boolean[] = []
    for (let at = 0; at < 67; at++) {
      await nextTurn()
      wholes.push((await call(client, 'short')).isWhole)
    }
    expect(wholes.indexOf(true)).toBe(65)
  })

  test('a short call with too large an answer head fails as with undici', async () => {
    const script: Script = {
      pieces: [`HTTP/1.1 200 OK\r\nX-Long: ${'a'.repeat(300)}\r\nContent-Length: 2\r\n\r\nok`],
      end: 'keep',
    }
    const how = async (kind: 'short' | 'undici'): Promise<string> => {
      const { client } = await serve([{ pieces: [ok], end: 'keep' }, script], { maxHeaderSize: 200 })
      await call(client, 'undici')
      await nextTurn()
      return (await call(client, kind)).how
    }
    expect(await how('short')).toBe(await how('undici'))
  })
})
