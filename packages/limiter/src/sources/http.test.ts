import { createSource } from '@test/sources/create-source'
import { type Answering, createHttpDouble, send } from '@test/sources/fake-http'
import { describe, expect, it, onTestFinished } from 'vitest'
import { sourceSuite } from '../testing/sources/suite.ts'
import { hashText } from './client/text.ts'
import { http } from './http.ts'

const interval = '100ms'

async function createServer(answer: Answering) {
  const server = await createHttpDouble(answer)
  onTestFinished(() => server.stop())
  return server
}

function read(address: string, options: Readonly<Record<string, unknown>> = {}) {
  const controller = new AbortController()
  onTestFinished(() => controller.abort())
  return createSource(http, address, { interval, ...options })
    .watch(controller.signal)
    [Symbol.asyncIterator]()
}

describe('http keeps the promises of a source', () => {
  const tests = sourceSuite({
    writes: true,
    async create() {
      let text: string | undefined
      const server = await createHttpDouble(({ request, body }, response) => {
        const { 'if-match': ifMatch, 'if-none-match': ifNoneMatch } = request.headers
        if (request.method === 'PUT') {
          const isAsRead = text === undefined ? ifNoneMatch === '*' : ifMatch === `"${hashText(text)}"`
          if (isAsRead) text = body
          return send(response, isAsRead ? 204 : 412)
        }
        if (text === undefined) return send(response, 404, 'no such page')
        const etag = `"${hashText(text)}"`
        if (ifNoneMatch === etag) return send(response, 304, '', { etag })
        send(response, 200, text, { etag })
      })
      return {
        ...server,
        source: createSource(http, `http://${server.authority}/rules.yaml`, { interval }),
        async put(to) {
          text = to
        },
        async remove() {
          text = undefined
        },
        close: server.stop,
      }
    },
    createAt: authority => createSource(http, `http://${authority}/rules.yaml`, { interval }),
  })
  it.each(tests)('$name', ({ run }) => run())
})

describe('http', () => {
  it('http sends conditional requests, and reads 304 as unchanged', async () => {
    const asked: (string | undefined)[] = []
    let etag = '"1"'
    const { authority } = await createServer(({ request }, response) => {
      asked.push(request.headers['if-none-match'])
      if (asked.length === 3) etag = 'W/"2"'
      send(response, request.headers['if-none-match'] === etag ? 304 : 200, etag, { etag })
    })
    const watch = read(`http://${authority}/`)
    expect((await watch.next()).value).toEqual({ text: '"1"', version: '"1"' })
    expect((await watch.next()).value).toEqual({ text: 'W/"2"', version: 'W/"2"' })
    expect(asked).toEqual([undefined, '"1"', '"1"'])
  })

  it.each([
    ['Sun, 15 Nov 2026 10:00:00 GMT', 'Sun, 15 Nov 2026 10:00:00 GMT'],
    [undefined, 'Sun, 15 Nov 2026 10:00:01 GMT'],
  ])('http uses Last-Modified only if it is older than a second: %s', async (expected, modified) => {
    const asked: (string | undefined)[] = []
    const { authority } = await createServer(({ request }, response) => {
      asked.push(request.headers['if-modified-since'])
      const headers = { 'last-modified': modified, date: 'Sun, 15 Nov 2026 10:00:01 GMT' }
      send(response, 200, `${asked.length}`, headers)
    })
    const watch = read(`http://${authority}/`)
    await watch.next()
    await watch.next()
    expect(asked).toEqual([undefined, expected])
  })

  it('http rejects a 304 without a conditional request', async () => {
    const { authority } = await createServer((_asked, response) => send(response, 304))
    await expect(read(`http://${authority}/`).next()).rejects.toThrow('HTTP 304')
  })

  it('http follows redirects on the same server, and no more than five', async () => {
    const { authority } = await createServer(({ url }, response) => {
      if (url.pathname === '/there') return send(response, 200, 'found')
      const location = url.pathname === '/here' ? '/there' : '/round'
      send(response, 302, '', { location })
    })
    expect((await read(`http://${authority}/here`).next()).value.text).toBe('found')
    await expect(read(`http://${authority}/round`).next()).rejects.toThrow('redirects more than 5 times')
  })

  it('http sends no credentials after a redirect to another origin', async () => {
    let isAsked = false
    const elsewhere = await createServer((_asked, response) => {
      isAsked = true
      send(response, 200, 'rules: []')
    })
    const { authority } = await createServer((_asked, response) =>
      send(response, 307, '', { location: `http://${elsewhere.authority}/` }),
    )
    await expect(read(`http://${authority}/`, { token: 'secret' }).next()).rejects.toThrow('redirects elsewhere')
    expect(isAsked).toBe(false)
  })

  it.each([
    ['a token', '', { token: 't' }, 'Bearer t'],
    ['words', '', { username: 'u', password: 'p' }, `Basic ${btoa('u:p')}`],
    ['the address', 'u:p%40@', {}, `Basic ${btoa('u:p@')}`],
    ['a header of its own', 'u:p@', { headers: { Authorization: 'Mine' } }, 'Mine'],
    ['nothing', '', {}, undefined],
  ])('http takes its credentials from %s', async (_from, before, options, expected) => {
    let sent: string | undefined
    const { authority } = await createServer(({ request }, response) => {
      sent = request.headers.authorization
      send(response, 200, 'rules: []')
    })
    await read(`http://${before}${authority}/`, options).next()
    expect(sent).toBe(expected)
  })

  it('http takes its credentials from the environment', async () => {
    process.env.DIANA_REMOTE_TOKEN = 'from-outside'
    onTestFinished(() => void delete process.env.DIANA_REMOTE_TOKEN)
    let sent: string | undefined
    const { authority } = await createServer(({ request }, response) => {
      sent = request.headers.authorization
      send(response, 200, 'rules: []')
    })
    await read(`http://${authority}/`).next()
    expect(sent).toBe('Bearer from-outside')
  })

  it('http reports refused credentials without showing them', async () => {
    const { authority } = await createServer((_asked, response) => send(response, 401))
    const error = await read(`http://user:hunter2@${authority}/a?key=sesame`)
      .next()
      .catch(error => error as Error)
    expect(String(error)).toBe(
      `DianaError: http http://${authority}/a: refused the credentials (HTTP 401); check username, password and token`,
    )
  })

  it('http stops reading an answer that grows beyond 4 MiB once it is unpacked', async () => {
    const { gzipSync } = await import('node:zlib')
    const { authority } = await createServer((_asked, response) => {
      response.writeHead(200, { 'content-encoding': 'gzip' }).end(gzipSync(Buffer.alloc(64 * 1024 * 1024)))
    })
    await expect(read(`http://${authority}/`).next()).rejects.toThrow('more than 4 MiB')
  })

  it('http stops reading an endless answer', async () => {
    const { authority } = await createServer((_asked, response) => {
      const pour = () => {
        while (!response.destroyed && response.write('x'.repeat(65_536)));
      }
      response.on('drain', pour)
      pour()
    })
    await expect(read(`http://${authority}/`).next()).rejects.toThrow('more than 4 MiB')
  })

  it.each(['ftp://host/', 'rules.yaml', 'http://', 'https://user:hunter2@:1/'])(
    'http refuses the address %s',
    address => {
      expect(() => createSource(http, address)).toThrow('must be a URL that begins with http:// or https://')
    },
  )

  it('http refuses an interval of less than 100 ms', () => {
    expect(() => createSource(http, 'http://host/', { interval: '99ms' })).toThrow('must be from 100ms to 1h')
  })
})

describe('a write by http', () => {
  const signal = AbortSignal.timeout(10_000)
  const base = { text: 'one', version: 'any' }

  it('a write is refused if the server gives no strong ETag, since it could undo another change', async () => {
    for (const headers of [{}, { etag: 'W/"weak"' }] as Record<string, string>[]) {
      const server = await createServer((_, response) => send(response, 200, 'one', headers))
      const source = createSource(http, `http://${server.authority}/`, {})
      await expect(source.write!('two', base, signal)).rejects.toThrow('ETag')
    }
  })

  it.each([405, 501, 401, 500, 302])('a write that is answered with %i fails', async status => {
    const server = await createServer(({ request }, response) => {
      if (request.method === 'PUT') send(response, status)
      else send(response, 200, 'one', { etag: '"1"' })
    })
    const source = createSource(http, `http://${server.authority}/`, {})
    await expect(source.write!('two', base, signal)).rejects.toMatchObject({ code: 'SOURCE_FAILED' })
  })

  it('a write that another change overtakes is a conflict', async () => {
    const server = await createServer(({ request }, response) => {
      if (request.method === 'PUT') send(response, 412)
      else send(response, 200, 'one', { etag: '"1"' })
    })
    const source = createSource(http, `http://${server.authority}/`, {})
    await expect(source.write!('two', base, signal)).rejects.toMatchObject({ code: 'CONFLICT' })
  })
})
