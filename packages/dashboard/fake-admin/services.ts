/** Plausible services and processes, for work on the page alone. */

const steps = 60

const wave = (base: number, phase: number): number[] =>
  Array.from({ length: steps }, (_, at) => {
    const turn = Math.floor(Date.now() / 5000) - steps + at
    return Math.max(0, Math.round(base * (1 + 0.3 * Math.sin((turn + phase) / 7))))
  })

function figures(perSecond: number, failing: number, latency: readonly [number, number, number] | undefined): object {
  const calls = wave(perSecond * 5, perSecond)
  const minute = calls.slice(-12).reduce((sum, count) => sum + count, 0)
  return {
    ...{ perSecond, calls: minute, errors: Math.round(minute * failing), retries: Math.round(minute * failing * 0.8) },
    ...(latency && { latency: { p50Ms: latency[0], p95Ms: latency[1], p99Ms: latency[2] } }),
    history: { calls, errors: calls.map((count, at) => (at < 30 ? 0 : Math.round(count * failing))) },
  }
}

const address = (name: string, more: object): object => ({
  ...{ address: name, state: 'healthy', weight: 1, share: 1, underWay: 2, waiting: 0, connections: 6, ...more },
})

export function services(): object {
  const orders = [
    address('http://10.0.0.11:3000', { figures: figures(42, 0, [5, 15, 30]) }),
    address('http://10.0.0.12:3000', {
      ...{ state: 'resting', forMs: 75_000, restMs: 4000, why: 'connect ECONNREFUSED 10.0.0.12:3000' },
      ...{ underWay: 0, connections: 0, figures: figures(1.2, 1, undefined) },
    }),
    address('http://10.0.0.13:3000', {
      weight: 2,
      share: 0.6,
      forMs: 12_000,
      figures: figures(18, 0.004, [7, 300, 1500]),
    }),
  ]
  const route = { host: [], method: [], headers: [], troubles: [] }
  return {
    at: Date.now(),
    stepMs: 5000,
    routes: [
      { ...route, id: 'orders', path: '/orders', addresses: orders, figures: figures(61, 0.02, [5, 20, 700]) },
      {
        ...{ ...route, id: 'search', host: ['search.example.com'], path: '/', method: ['GET'] },
        troubles: ['search.internal: getaddrinfo EAI_AGAIN search.internal'],
        addresses: [address('http://search.internal', { figures: figures(8, 0, [20, 70, 100]), waiting: 3 })],
        figures: figures(8, 0, [20, 70, 100]),
      },
    ],
  }
}

export function processes(startedAt: number): object {
  const one = (pid: number, busy: number, rejected: object) => ({
    ...{ pid, startedAt },
    load: {
      ...{ utilization: busy, delay: { p50Ms: 0.4, p99Ms: 6 + busy * 20 }, cpu: busy * 1.1 },
      ...{ rssBytes: 98e6 + busy * 4e7, heapUsedBytes: 41e6, heapLimitBytes: 2.1e9 },
    },
    callers: { connections: Math.round(busy * 400), inProgress: Math.round(busy * 30), rejected },
    history: Object.fromEntries(
      ['utilization', 'delayMs', 'cpu', 'rssBytes', 'heapUsedBytes'].map(name => {
        return [name, wave(100, pid).map(value => (value / 100) * busy)]
      }),
    ),
  })
  return {
    ...{ at: Date.now(), stepMs: 5000 },
    processes: [one(4101, 0.62, { timeout: 3, unreadable: 1 }), one(4102, 0.58, {}), one(4103, 0.6, { method: 2 })],
  }
}
