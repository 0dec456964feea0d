import { execFile } from 'node:child_process'
import { connect } from 'node:net'
import { promisify } from 'node:util'
import { afterEach, describe, expect, test } from 'vitest'
import { GatewayRig, sendRaw, statusesIn } from '../../helpers/gateway-rig.ts'

const rig = new GatewayRig()
afterEach(() => rig.close())

async function guardRaw(answer: string, onCall: (call: string) => void = () => {}) {
  const to = await rig.serveRaw(socket => {
    let call = ''
    socket.on('data', bytes => {
      call += bytes.toString('latin1')
      onCall(call)
      if (call.includes('\r\n\r\n')) socket.end(answer, 'latin1')
    })
  })
  return await rig.guard({ gateway: { routes: [{ to }] } })
}

const get = (more: readonly string[] = [], version = '1.1'): string =>
  `${[`GET /a HTTP/${version}`, 'Host: a', 'Connection: close', ...more].join('\r\n')}\r\n\r\n`

const chunked = (trailers: readonly string[], head: readonly string[] = []): string =>
  ['HTTP/1.1 200 OK', 'Transfer-Encoding: chunked', ...head, '', '2', 'ok', '0', ...trailers, '', ''].join('\r\n')

describe('trailers of an answer', () => {
  test('trailers of an answer reach the caller', async () => {
    const { port } = await guardRaw(
      chunked(['X-Sum: 1', 'Grpc-Status: 0', 'X-Sum: 2'], ['Trailer: X-Sum, Grpc-Status']),
    )
    const answer = await sendRaw(port, get(['TE: trailers']))
    expect(answer).toMatch(/\r\n0\r\nx-sum: 1\r\nx-sum: 2\r\ngrpc-status: 0\r\n\r\n$/i)
  })

  test.each([
    'Transfer-Encoding',
    'Host',
    'Set-Cookie',
    'Authorization',
    'Content-Type',
    'Connection',
    'Retry-After',
    'RateLimit',
    'Cache-Control',
    'Trailer',
  ])('trailers of an answer are dropped if they are %s, which is not allowed there', async name => {
    const { port } = await guardRaw(chunked([`${name}: 1`, 'X-Sum: 1']))
    const answer = await sendRaw(port, get())
    expect(answer.slice(answer.indexOf('\r\n\r\n'))).not.toMatch(new RegExp(name, 'i'))
    expect(answer).toMatch(/x-sum: 1/i)
  })

  test('trailers of an answer are left out for a caller of HTTP/1.0, who could not read them', async () => {
    const { port } = await guardRaw(chunked(['X-Sum: 1'], ['Trailer: X-Sum']))
    const answer = await sendRaw(port, get([], '1.0'))
    expect([answer.endsWith('\r\n\r\nok'), /x-sum: 1/i.test(answer)]).toEqual([true, false])
  })

  test('trailers that Node cannot write do not break the answer', async () => {
    const { port } = await guardRaw(chunked(['X-Sum: caf\u00e9', 'X-Other: \u0080']))
    const answer = await sendRaw(port, get())
    expect([statusesIn(answer), answer.includes('ok'), answer.endsWith('\r\n\r\n')]).toEqual([[200], true, true])
  })
})

describe('trailers of a call', () => {
  const post = (head: readonly string[], trailers: readonly string[]): string =>
    [
      'POST /a HTTP/1.1',
      'Host: a',
      'Connection: close',
      'Transfer-Encoding: chunked',
      ...head,
      '',
      '3',
      'abc',
      '0',
      ...trailers,
      '',
      '',
    ].join('\r\n')

  test('trailers of a call reach the service, as does the header that announces them', async () => {
    const service = await rig.serve((incoming, response) =>
      incoming.resume().on('end', () => response.end(JSON.stringify([incoming.headers, incoming.rawTrailers]))),
    )
    const { port } = await rig.guard({ gateway: { routes: [{ to: service.url }] } })
    const answer = await sendRaw(
      port,
      post(['Trailer: X-Sum', 'TE: trailers'], ['X-Sum: 1', 'Authorization: x', 'X_Odd: 1']),
    )
    expect(statusesIn(answer)).toEqual([200])
    expect(service.received[0]!.headers).toMatchObject({ trailer: 'X-Sum' })
    expect(service.received[0]!.trailers).toEqual({ 'x-sum': '1' })
  })
})

describe('interim answers', () => {
  const navigates = ['Sec-Fetch-Mode: navigate']
  const hints = 'HTTP/1.1 103 Early Hints\r\nLink: </a>; rel=preload\r\n\r\n'
  const final = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'
  test.each([
    ['103 with one link', '103 Early Hints', ['Link: </a.css>; rel=preload; as=style']],
    [
      '103 with several links in one line',
      '103 Early Hints',
      ['Link: </a.css>; rel=preload; as=style, </b.js>; rel=preload'],
    ],
    [
      '103 with two lines',
      '103 Early Hints',
      ['Link: </a.css>; rel=preload', 'Link: <https://b.example>; rel=preconnect; crossorigin'],
    ],
    ['103 with a quoted parameter', '103 Early Hints', ['Link: </a>; rel="preload next"; title="a; b, c"']],
    ['103 without a link', '103 Early Hints', ['Content-Security-Policy: default-src *']],
    ['103 without any header', '103 Early Hints', []],
    ['102', '102 Processing', ['X-Done: 10']],
    ['104, which came later', '104 Upload Resumption Supported', ['Location: /uploads/1']],
  ])('%s is passed on as it is, without headers of the connection', async (_, status, lines) => {
    const hop = ['Connection: keep-alive, x-hop', 'X-Hop: 1', 'Content-Length: 5', 'Transfer-Encoding: chunked']
    const { port } = await guardRaw(`HTTP/1.1 ${[status, ...lines, ...hop.slice(0, 2)].join('\r\n')}\r\n\r\n${final}`)
    const answer = await sendRaw(port, get(navigates))
    const [interim, rest] = answer.split(/\r\n\r\n(?=HTTP)/)
    expect(interim!.toLowerCase()).toBe([`HTTP/1.1 ${status}`, ...lines].join('\r\n').toLowerCase())
    expect(rest).toMatch(/^HTTP\/1\.1 200 OK[\s\S]*ok$/)
  })

  test('interim answers reach the caller before the answer does', async () => {
    let answerNow = (): void => {}
    const to = await rig.serveRaw(socket => {
      socket.once('data', () => socket.write('HTTP/1.1 103 Early Hints\r\nLink: </a>; rel=preload\r\n\r\n'))
      answerNow = () => socket.end(final)
    })
    const { port } = await rig.guard({ gateway: { routes: [{ to }] } })
    const socket = connect(port, '127.0.0.1').setEncoding('latin1')
    socket.write(get(navigates))
    let answer = ''
    await new Promise<void>(resolve => {
      socket.on('data', text => {
        answer += text
        if (answer.startsWith('HTTP/1.1 103') && !answer.includes('200')) answerNow()
        if (answer.endsWith('ok')) resolve()
      })
    })
    expect(statusesIn(answer)).toEqual([103, 200])
  })

  test.each([0, 7, 99, 101])('interim answers with the invalid status %i are not passed on', async status => {
    const { port } = await guardRaw(`HTTP/1.1 ${String(status).padStart(3, '0')} Odd\r\n\r\n${final}`)
    expect((await sendRaw(port, get(navigates))).slice(0, 12)).toMatch(/^HTTP\/1\.1 (200|502)$/)
  })

  test.each([
    ['auto', [], [200]],
    ['auto', ['Sec-Fetch-Mode: cors'], [200]],
    ['auto', ['Accept: text/html', 'User-Agent: Python-urllib/3.11'], [200]],
    ['auto', ['Sec-Fetch-Mode: navigate'], [103, 200]],
    ['auto', ['Upload-Complete: ?1'], [103, 200]],
    ['always', [], [103, 200]],
    ['never', ['Sec-Fetch-Mode: navigate'], [200]],
  ] as const)('earlyHints: %s with the headers %j gives %j', async (earlyHints, headers, statuses) => {
    const to = await rig.serveRaw(socket => socket.once('data', () => socket.end(hints + final)))
    for (const gateway of [{ earlyHints, routes: [{ to }] }, { routes: [{ to, earlyHints }] }]) {
      const { port } = await rig.guard({ gateway })
      expect(statusesIn(await sendRaw(port, get(headers)))).toEqual(statuses)
    }
  })

  test("Python's http.client reads the answer of a service that sends hints", async () => {
    const { url } = await guardRaw(hints + final)
    const program = 'import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1], timeout=10).read())'
    const { stdout } = await promisify(execFile)('python3', ['-c', program, url])
    expect(stdout).toBe("b'ok'\n")
  })

  test('interim answers are left out for a caller of HTTP/1.0', async () => {
    const { port } = await guardRaw(`HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n${final}`)
    expect(statusesIn(await sendRaw(port, get(navigates, '1.0')))).toEqual([200])
  })
})

describe('absolute-form targets', () => {
  test.each([
    ['http://shop.example/a', 200, '/a'],
    ['http://shop.example', 200, '/'],
    ['http://shop.example/', 200, '/'],
    ['http://shop.example?x=1', 200, '/?x=1'],
    ['http://shop.example/?x=http://b/c', 200, '/?x=http://b/c'],
    ['HTTP://SHOP.example/a', 200, '/a'],
    ['https://shop.example/a', 200, '/a'],
    ['http://shop.example:8080/a/../b', 200, '/b'],
    ['http://[::1]:80/a', 200, '/a'],
    ['ws://shop.example/a', 400, undefined],
    ['http:///a', 400, undefined],
    ['http://', 400, undefined],
    ['http:/a', 400, undefined],
    ['http://user@shop.example/a', 400, undefined],
    ['http://sh op.example/a', 400, undefined],
    ['shop.example/a', 400, undefined],
  ])('%s gives %i and reaches the service as %s', async (target, status, path) => {
    const service = await rig.serve()
    const { port } = await rig.guard({ gateway: { routes: [{ to: service.url }] } })
    const answer = await sendRaw(port, `GET ${target} HTTP/1.1\r\nHost: other.example\r\nConnection: close\r\n\r\n`)
    expect([statusesIn(answer)[0], service.received[0]?.url]).toEqual([status, path])
    const host = /^\w+:\/\/([^/?]*)/.exec(target)?.[1]
    if (status === 200) expect(service.received[0]!.headers.host).toBe(host)
  })

  test('absolute-form targets find the route of their host, whatever Host says, and are counted by their path', async () => {
    const [shop, other] = [await rig.serve(), await rig.serve()]
    const { port } = await rig.guard({
      rules: [{ id: 'a', match: { path: '/a' }, limit: '1/h' }],
      gateway: { routes: [{ host: 'shop.example', to: shop.url }, { to: other.url }] },
    })
    const call = (target: string) => sendRaw(port, `GET ${target} HTTP/1.1\r\nHost: b\r\nConnection: close\r\n\r\n`)
    expect(statusesIn(await call('http://shop.example/a'))).toEqual([200])
    expect(statusesIn(await call('/a'))).toEqual([503])
    expect(statusesIn(await call('HTTP://Shop.Example:80/b'))).toEqual([200])
    expect([shop.received.length, other.received.length]).toEqual([2, 0])
  })
})
