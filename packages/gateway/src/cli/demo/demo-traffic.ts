import { repeat } from 'diana-limiter/gateway'

/** One caller of the demo: how often it calls, swelling and ebbing as people do. */
interface Caller {
  readonly account: string
  readonly method: 'GET' | 'POST'
  readonly path: string
  readonly perSecond: number
  /** The time that a swell and an ebb take together. */
  readonly tideSeconds: number
}

// none of them is ann or bob, the names that the demo gives its reader
const callers: readonly Caller[] = [
  { account: 'iris', method: 'GET', path: '/orders', perSecond: 4, tideSeconds: 60 },
  { account: 'juno', method: 'GET', path: '/orders/1', perSecond: 2, tideSeconds: 45 },
  { account: 'luna', method: 'GET', path: '/hello', perSecond: 0.8, tideSeconds: 30 },
  { account: 'mars', method: 'POST', path: '/orders', perSecond: 0.6, tideSeconds: 40 },
  { account: 'nike', method: 'POST', path: '/sms', perSecond: 0.1, tideSeconds: 50 },
  { account: 'vesta', method: 'GET', path: '/reports', perSecond: 1.8, tideSeconds: 35 },
]

const TICK_MS = 100

/** Calls the demo's gateway a little, about ten times a second, until it is ended. */
export function startDemoTraffic(gateway: string): () => Promise<void> {
  const ending = new AbortController()
  const dues = callers.map(() => 0)
  let ticks = 0
  const calling = repeat('calls of the demo', TICK_MS, () => {
    ticks++
    for (const [index, caller] of callers.entries()) {
      dues[index]! += (rateAt(caller, (ticks * TICK_MS) / 1000) * TICK_MS) / 1000
      if (dues[index]! < 1) continue
      dues[index]! -= 1
      void call(gateway, caller, ending.signal)
    }
  })
  return async () => {
    calling.stop()
    ending.abort()
  }
}

/** Returns the rate at a moment: from nearly nothing to twice the usual. */
export function rateAt({ perSecond, tideSeconds }: Caller, second: number): number {
  return perSecond * (1 + 0.9 * Math.sin((second / tideSeconds) * 2 * Math.PI))
}

async function call(gateway: string, { account, method, path }: Caller, signal: AbortSignal): Promise<void> {
  const headers = { 'x-account-id': account, 'x-device-id': `${account}-phone` }
  try {
    const response = await fetch(gateway + path, { method, headers, signal })
    await response.arrayBuffer()
  } catch {
    // the gateway is closing, and so is the demo
  }
}
