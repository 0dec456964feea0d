import { EventEmitter } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { createLimiter, type Limiter } from 'diana-limiter'
import { limitEvents, limitMessages } from 'diana-limiter/messages'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { dimensions } from '../../packages/limiter/src/dimensions/index.ts'
import { engineOf } from '../../packages/limiter/src/engine/engine-of.ts'

// Whatever fails while a message is decided, in the application's functions or in Diana: no error ends the process, and no message is lost.

type Options = NonNullable<Parameters<typeof limitMessages>[1]>

/** Sends messages over one connection; returns those that were delivered, and whether the connection is open. */
type Send = (limiter: Limiter, options: Options, count: number) => Promise<{ delivered: unknown[]; isOpen: boolean }>

const request = { method: 'GET', url: '/', headers: { 'x-user': 'ann' }, socket: {} } as unknown as IncomingMessage

const libraries: Readonly<Record<string, Send>> = {
  ws: async (limiter, options, count) => {
    let isOpen = true
    const close = (): void => {
      isOpen = false
    }
    const socket = Object.assign(new EventEmitter(), { pause() {}, resume() {}, close })
    limitMessages(limiter, options)(socket, request)
    const delivered: unknown[] = []
    socket.on('message', message => delivered.push(message))
    for (let at = 1; at <= count; at++) socket.emit('message', at)
    await settle()
    return { delivered, isOpen }
  },
  'Socket.IO': async (limiter, options, count) => {
    let isOpen = true
    let middleware: (event: unknown[], next: (error?: Error) => void) => void = () => {}
    const socket = Object.assign(new EventEmitter(), {
      request,
      use(given: typeof middleware) {
        middleware = given
      },
      disconnect() {
        isOpen = false
      },
    })
    limitEvents(limiter, options)(socket)
    const delivered: unknown[] = []
    for (let at = 1; at <= count; at++) middleware(['say', at], error => void (error ?? delivered.push(at)))
    await settle()
    return { delivered, isOpen }
  },
}

const closing: (() => unknown)[] = []
const uncaught: unknown[] = []
const remember = (error: unknown): void => void uncaught.push(error)

beforeEach(() => {
  vi.spyOn(process, 'emitWarning').mockImplementation(() => {})
  process.on('unhandledRejection', remember)
})
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
  process.off('unhandledRejection', remember)
  uncaught.length = 0
  vi.restoreAllMocks()
})

// rejections are reported after the microtasks of their turn
async function settle(): Promise<void> {
  for (let turn = 0; turn < 5; turn++) await new Promise(setImmediate)
}

const fail = (): never => {
  throw new Error('a fault')
}
const foreignRejection = (): object => {
  const then = (_resolve: unknown, reject: (error: unknown) => void): void => reject(new Error('no answer'))
  return Object.defineProperty({}, 'then', { value: then })
}
const faults: Readonly<Record<string, () => unknown>> = {
  throws: fail,
  'is async and throws': async () => fail(),
  'returns a promise of another library that rejects': foreignRejection,
  'returns an object with a then that throws': () => Object.defineProperty({}, 'then', { get: fail }),
  'returns a proxy that throws': () => new Proxy({}, { get: fail, ownKeys: fail, getPrototypeOf: fail }),
  'returns an object whose getter throws': () => ({
    get account() {
      return fail()
    },
  }),
  'returns no object': () => 7,
}

const match = { websocket: 'messages' } as const

async function limiterOf(options: object): Promise<Limiter> {
  const limiter = await createLimiter({ clock: () => 1_700_000_000_000, ...options } as never)
  closing.push(() => limiter.close())
  return limiter
}

describe.each(Object.entries(libraries))('%s', (_library, send) => {
  const broken = {
    rules: [{ id: 'broken', match, by: 'broken', limit: '1/h' }],
    dimensions: [...dimensions, { name: 'broken', argument: 'none' as const, read: fail }],
  }
  const twice = { rules: [{ id: 'chat', match, by: 'header:x-user', limit: '2/h' }] }

  test.each(Object.entries(faults))('messages are counted although attributes %s', async (_kind, attributes) => {
    const limiter = await limiterOf(twice)
    const found = await send(limiter, { attributes: attributes as never, onError: () => {} }, 4)
    expect([found, uncaught]).toEqual([{ delivered: [1, 2], isOpen: false }, []])
  })

  test.each(Object.entries(faults))('messages are dropped although onRefused %s', async (_kind, onRefused) => {
    const limiter = await limiterOf(twice)
    const found = await send(limiter, { onRefused: onRefused as never, onError: () => {}, tooFast: 'drop' }, 4)
    expect([found, uncaught]).toEqual([{ delivered: [1, 2], isOpen: true }, []])
  })

  test.each(Object.entries(faults))('messages pass although onError %s', async (_kind, onError) => {
    const limiter = await limiterOf(broken)
    const found = await send(limiter, { onError: onError as never }, 3)
    expect([found, uncaught]).toEqual([{ delivered: [1, 2, 3], isOpen: true }, []])
  })

  test.each(['pass', 'refuse'] as const)('messages that cannot be judged follow whenFailed: %s', async whenFailed => {
    const limiter = await limiterOf({ ...broken, whenFailed })
    const errors: unknown[] = []
    const found = await send(limiter, { onError: error => errors.push(error) }, 3)
    const isPassed = whenFailed === 'pass'
    expect(found).toEqual(isPassed ? { delivered: [1, 2, 3], isOpen: true } : { delivered: [], isOpen: false })
    expect(errors.length).toBeGreaterThan(0)
    const { passed, refused } = engineOf(limiter).stats().unjudged!
    expect([passed === 3, refused > 0, uncaught]).toEqual([isPassed, !isPassed, []])
  })

  test('messages pass when their limiter was closed, as those of filters do', async () => {
    const limiter = await limiterOf(twice)
    await limiter.close()
    const found = await send(limiter, { onError: () => {} }, 3)
    expect([found, uncaught]).toEqual([{ delivered: [1, 2, 3], isOpen: true }, []])
  })
})

test('a listener that throws keeps back no message that has waited', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'setInterval', 'clearTimeout', 'performance', 'Date'] })
  closing.push(() => vi.useRealTimers())
  const rule = { algorithm: 'leaky-bucket', limit: '10/s', burst: 1, whenFull: 'wait', queue: { timeout: '10s' } }
  const limiter = await createLimiter({ rules: [{ id: 'chat', match, ...rule }] as never })
  closing.push(() => limiter.close())
  let isPaused = false
  const socket = Object.assign(new EventEmitter(), {
    pause() {
      isPaused = true
    },
    resume() {
      isPaused = false
    },
    close() {},
  })
  limitMessages(limiter)(socket, request)
  const delivered: unknown[] = []
  socket.on('message', message => {
    delivered.push(message)
    if (message > 1) fail()
  })
  const listeners = process.listeners('uncaughtException')
  process.removeAllListeners('uncaughtException')
  const thrown: unknown[] = []
  const note = (error: unknown): void => void thrown.push(error)
  process.on('uncaughtException', note)
  try {
    for (let at = 1; at <= 4; at++) socket.emit('message', at)
    for (let step = 0; step < 10; step++) {
      await vi.advanceTimersByTimeAsync(100)
      await settle()
    }
  } finally {
    process.off('uncaughtException', note)
    for (const listener of listeners) process.on('uncaughtException', listener)
  }
  expect([delivered, thrown.length, isPaused]).toEqual([[1, 2, 3, 4], 3, false])
})
