import { once } from 'node:events'
import { connect } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { afterEach, describe, expect, test } from 'vitest'
import { GatewayRig, type Service } from '../../helpers/gateway-rig.ts'

const rig = new GatewayRig()
afterEach(() => rig.close())

interface Span {
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId?: string
  readonly name: string
  readonly kind: number
  readonly startTimeUnixNano: string
  readonly endTimeUnixNano: string
  readonly attributes: readonly { key: string; value: { stringValue?: string; intValue?: string } }[]
  readonly status: { code?: number }
}

const traceId = '0af7651916cd43dd8448eb211c80319c'
const parentId = 'b7ad6b7169203331'
const sampled = `00-${traceId}-${parentId}-01`

/** A collector that remembers the spans it was sent. */
async function startCollector(status: () => number = () => 200) {
  const spans: Span[] = []
  const requests: { url?: string | undefined; type?: string | undefined; service?: string | undefined }[] = []
  const collector = await rig.serve(async (request, response) => {
    let text = ''
    for await (const piece of request) text += piece
    const code = status()
    response.writeHead(code, { 'content-type': 'application/json' }).end('{}')
    if (code !== 200) return
    const [batch] = JSON.parse(text).resourceSpans
    requests.push({
      url: request.url,
      type: request.headers['content-type'],
      service: batch.resource.attributes[0].value.stringValue,
    })
    spans.push(...batch.scopeSpans[0].spans)
  })
  return { url: collector.url, spans, requests, received: collector.received }
}

function attributesOf({ attributes }: Span): Record<string, string> {
  return Object.fromEntries(attributes.map(({ key, value }) => [key, value.stringValue ?? value.intValue!]))
}

async function guard(collector: string, to: string | string[], more: object = {}, words: object = {}) {
  return await rig.guard({
    ...words,
    gateway: {
      tracing: { endpoint: collector, sample: 1 },
      routes: [{ path: '/a', to, health: { failures: 1000 } }],
      ...more,
    },
  })
}

function parentsSeen({ received }: Service): string[] {
  return received.map(({ headers }) => String(headers.traceparent).split('-')[2]!)
}

describe('traces', () => {
  test('traces of a caller are continued: the call is a child span, and each try a child of the call', async () => {
    const collector = await startCollector()
    const service = await rig.serve()
    const dead = rig.nowhere()
    const { url, gateway } = await guard(collector.url, [dead, service.url])
    const answer = await fetch(`${url}/a/1?token=secret`, {
      headers: { traceparent: sampled, tracestate: 'vendor=value', 'user-agent': 'agent' },
    })
    await answer.text()
    await gateway.close()

    expect(collector.requests).toEqual([{ url: '/v1/traces', type: 'application/json', service: 'diana-gateway' }])
    const [call, first, second] = collector.spans
    expect(collector.spans).toHaveLength(3)
    expect(collector.spans.map(span => span.traceId)).toEqual([traceId, traceId, traceId])
    expect([call!.kind, first!.kind, second!.kind]).toEqual([2, 3, 3])
    expect(call!.parentSpanId).toBe(parentId)
    expect([first!.parentSpanId, second!.parentSpanId]).toEqual([call!.spanId, call!.spanId])
    expect(new Set(collector.spans.map(span => span.spanId)).size).toBe(3)
    expect(parentsSeen(service)).toEqual([second!.spanId])
    expect(service.received[0]!.headers).toMatchObject({
      traceparent: `00-${traceId}-${second!.spanId}-01`,
      tracestate: 'vendor=value',
    })
    expect(call!.name).toBe('GET /a')
    expect(attributesOf(call!)).toMatchObject({
      'http.request.method': 'GET',
      'url.path': '/a/1',
      'url.scheme': 'http',
      'http.route': '/a',
      'http.response.status_code': '200',
      'server.address': '127.0.0.1',
      'client.address': '127.0.0.1',
      'network.protocol.version': '1.1',
      'user_agent.original': 'agent',
      'diana.verdict': 'passed',
      'diana.request_id': answer.headers.get('x-request-id'),
    })
    expect(JSON.stringify(collector.spans)).not.toContain('secret')
    expect(attributesOf(first!)).toMatchObject({ 'error.type': 'ECONNREFUSED' })
    expect(first!.status).toEqual({ code: 2 })
    expect(attributesOf(second!)).toMatchObject({
      'http.response.status_code': '200',
      'http.request.resend_count': '1',
      'server.port': new URL(service.url).port,
    })
    for (const span of collector.spans) {
      expect(span.spanId).toMatch(/^[\da-f]{16}$/)
      expect(BigInt(span.endTimeUnixNano)).toBeGreaterThanOrEqual(BigInt(span.startTimeUnixNano))
      expect(BigInt(span.startTimeUnixNano)).toBeGreaterThanOrEqual(BigInt(call!.startTimeUnixNano))
      expect(Math.abs(Number(BigInt(span.startTimeUnixNano) / 1_000_000n) - Date.now())).toBeLessThan(60_000)
    }
  })

  test('traces begin at the gateway for callers without a valid one', async () => {
    const collector = await startCollector()
    const service = await rig.serve()
    const { url, gateway } = await guard(collector.url, service.url)
    await (await fetch(`${url}/a`)).text()
    await (await fetch(`${url}/a`, { headers: { traceparent: 'nonsense', tracestate: 'a=b' } })).text()
    await gateway.close()
    const calls = collector.spans.filter(({ kind }) => kind === 2)
    expect(calls.map(({ parentSpanId }) => parentSpanId)).toEqual([undefined, undefined])
    expect(new Set(calls.map(span => span.traceId)).size).toBe(2)
    expect(calls.every(span => /^[\da-f]{32}$/.test(span.traceId))).toBe(true)
    expect(service.received[1]!.headers.tracestate).toBeUndefined()
    expect(service.received.map(({ headers }) => headers.traceparent)).toEqual(
      collector.spans.filter(({ kind }) => kind === 3).map(span => `00-${span.traceId}-${span.spanId}-01`),
    )
  })

  test('traces record refusals with their rule, WebSockets, and failures', async () => {
    const collector = await startCollector()
    const service = await rig.serve((_request, response) => response.writeHead(500).end())
    service.server.on('upgrade', (_request, socket) => {
      socket.end('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n')
    })
    const { url, port, gateway } = await guard(
      collector.url,
      service.url,
      {},
      { rules: [{ id: 'none', match: { path: '/a/limited' }, limit: '0/h' }] },
    )
    await (await fetch(`${url}/a/limited`)).text()
    await (await fetch(`${url}/a`)).text()
    const socket = connect(port, '127.0.0.1')
    socket.on('error', () => {})
    socket.resume()
    socket.write('GET /a HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n')
    await once(socket, 'close')
    await gateway.close()
    const calls = collector.spans.filter(({ kind }) => kind === 2)
    expect(calls.map(attributesOf)).toMatchObject([
      { 'diana.verdict': 'refused', 'diana.rule': 'none', 'http.response.status_code': '503' },
      { 'diana.verdict': 'passed', 'http.response.status_code': '500', 'error.type': '500' },
      { 'http.response.status_code': '101' },
    ])
    expect(calls[1]!.status).toEqual({ code: 2 })
    const tries = collector.spans.filter(({ kind }) => kind === 3)
    expect(tries.map(span => span.parentSpanId)).toEqual([calls[1]!.spanId, calls[2]!.spanId])
  })

  test('traces are sampled as a trusted proxy decides, and by the configured share for other callers', async () => {
    for (const trustProxy of [0, 1]) {
      const collector = await startCollector()
      const service = await rig.serve()
      const tracing = { endpoint: collector.url, sample: 0 }
      const { url, gateway } = await guard(collector.url, service.url, { tracing }, { trustProxy })
      await (await fetch(`${url}/a`, { headers: { traceparent: sampled } })).text()
      await gateway.close()
      expect(collector.spans.length).toBe(trustProxy === 0 ? 0 : 2)
      expect(service.received[0]!.headers.traceparent).toMatch(
        new RegExp(`^00-${traceId}-[0-9a-f]{16}-0${trustProxy}$`),
      )
      expect(parentsSeen(service)).not.toContain(parentId)
    }
  })

  test('traces are dropped and counted while the collector is stalled, and calls are served all the while', async () => {
    const stalled = await rig.serveRaw(() => {})
    const service = await rig.serve()
    const { url, gateway, httpStats } = await guard(stalled, service.url)
    for (let at = 0; at < 3; at++) expect((await fetch(`${url}/a`)).status).toBe(200)
    const began = performance.now()
    await gateway.close()
    expect(performance.now() - began).toBeLessThan(5000)
    expect(httpStats()).toMatchObject({ exportedSpans: 0, droppedSpans: 6 })
  })

  test('traces are sent again to a collector that was busy, and not to one that refuses them', async () => {
    let status = 503
    const collector = await startCollector(() => status)
    const service = await rig.serve()
    const { url, gateway, httpStats } = await guard(collector.url, service.url)
    await (await fetch(`${url}/a`)).text()
    await expect.poll(() => collector.received.length, { timeout: 5000 }).toBe(1)
    await pause(0)
    status = 200
    await expect.poll(() => httpStats().exportedSpans, { timeout: 10_000 }).toBe(2)
    expect(collector.spans).toHaveLength(2)
    status = 400
    await (await fetch(`${url}/a`)).text()
    await gateway.close()
    expect(httpStats()).toMatchObject({ exportedSpans: 2, droppedSpans: 2 })
  })

  test('trace headers are unchanged if tracing is off', async () => {
    const service = await rig.serve()
    const { url } = await rig.guard({ gateway: { routes: [{ path: '/a', to: service.url }] } })
    await (await fetch(`${url}/a`, { headers: { traceparent: sampled, tracestate: 'a=b' } })).text()
    expect(service.received[0]!.headers).toMatchObject({ traceparent: sampled, tracestate: 'a=b' })
  })
})
