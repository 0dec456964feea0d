import { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { CallRecord } from './call-record.ts'
import { httpMeasures } from './http-measures.ts'
import { durationBounds, type HttpStats, mergeHttpStats, TrafficCounts } from './http-stats.ts'

interface Ended {
  readonly route: string
  readonly method: string
  readonly status: number
  readonly ms: number
}

function recordOf({ route, method, status, ms }: Ended): CallRecord {
  const request = new IncomingMessage(new Socket())
  request.method = method
  const record = new CallRecord(request, new ServerResponse(request), 0)
  record.route = { label: route } as never
  record.answered(status)
  record.finish(ms)
  return record
}

function figuresOf(calls: readonly Ended[]): HttpStats {
  const counts = new TrafficCounts()
  for (const call of calls) counts.add(recordOf(call))
  return {
    ...{ traffic: counts.figures(), upstreams: [], routes: [], rejected: {}, inProgress: 1, connections: 2 },
    ...{ droppedLines: 3, exportedSpans: 4, droppedSpans: 5, faults: { uncaught: 6 } },
  }
}

const call = fc.record<Ended>({
  route: fc.constantFrom('/a', '/b'),
  method: fc.constantFrom('GET', 'POST', 'PROPFIND', 'M-SEARCH', ''),
  status: fc.constantFrom(101, 200, 304, 404, 499, 503, 999),
  ms: fc.constantFrom(0, 4.9, 5, 5.1, 9999, 10_000, 10_001, 1e6),
})

function samplesOf(figures: HttpStats): Map<string, number> {
  const samples = httpMeasures.flatMap(({ name, read }) =>
    read(figures).map(
      ({ metricName = name, labels, value }) => [`${metricName} ${JSON.stringify(labels)}`, value] as const,
    ),
  )
  const byName = new Map(samples)
  expect(byName.size).toBe(samples.length)
  return byName
}

describe('HTTP statistics', () => {
  test('HTTP statistics of several processes equal those of one process with all calls', () => {
    fc.assert(
      fc.property(fc.array(call), fc.array(call), (one, other) => {
        const merged = samplesOf(mergeHttpStats([figuresOf(one), figuresOf(other)]))
        const whole = samplesOf(figuresOf([...one, ...other]))
        for (const [name, value] of whole) {
          if (name.includes('route')) expect([name, merged.get(name)]).toEqual([name, expect.closeTo(value, 6)])
        }
        expect(merged.get('diana_http_connections {}')).toBe(4)
      }),
    )
  })

  test('HTTP statistics count each call once, by a method and a class of statuses that no caller can invent', () => {
    const { traffic } = figuresOf([
      { route: '/a', method: 'GET', status: 200, ms: 1 },
      { route: '/a', method: 'INVENTED', status: 999, ms: 1 },
      { route: '/a', method: 'PROPFIND', status: 101, ms: 1 },
    ])
    expect(traffic).toMatchObject([{ calls: { 'GET 2xx': 1, 'OTHER 5xx': 1, 'OTHER 1xx': 1 } }])
  })

  test('HTTP statistics put a duration at a bound into the bucket of that bound', () => {
    const [{ duration } = { duration: undefined }] = figuresOf(
      [5, 5.1, 10_000, 10_001].map(ms => {
        return { route: '/a', method: 'GET', status: 200, ms }
      }),
    ).traffic
    const expected = Array(durationBounds.length + 1).fill(0)
    expected[0] = 1
    expected[1] = 1
    expected[durationBounds.length - 1] = 1
    expected[durationBounds.length] = 1
    expect(duration?.counts).toEqual(expected)
    expect(duration?.sumSeconds).toBeCloseTo(20.0111, 9)
  })

  test('HTTP statistics stay bounded however often routes change', () => {
    const counts = new TrafficCounts()
    for (let at = 0; at < 10_100; at++) counts.add(recordOf({ route: `/${at}`, method: 'GET', status: 200, ms: 1 }))
    const figures = counts.figures()
    expect(figures.length).toBe(10_001)
    expect(figures.find(({ route }) => route === 'other')?.calls).toEqual({ 'GET 2xx': 100 })
  })
})
