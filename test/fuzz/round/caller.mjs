import { Agent, request } from 'node:http'
import { Agent as TlsAgent, request as tlsRequest } from 'node:https'
import { setTimeout as pause } from 'node:timers/promises'
import { apiKey } from '../plan/requests.mjs'
import { startFairTime } from './fair-time.mjs'

let number = 0

/** One call of a gateway; resolves to its status and body, or to the error's code, and to its time. */
export function callOnce(gateway, path, { agent = false, timeoutMs = 10_000 } = {}) {
  const token = `t${++number}`
  const began = performance.now()
  const fairTime = startFairTime(gateway)
  return new Promise(resolve => {
    const done = outcome => {
      clearTimeout(timer)
      resolve({ ...outcome, token, ms: performance.now() - began, fairMs: fairTime() })
    }
    const options = { agent, headers: { 'x-token': token, 'x-api-key': apiKey }, rejectUnauthorized: false }
    const asked = (gateway.isTls ? tlsRequest : request)(gateway.url + path, options, answer => {
      let body = ''
      answer.setEncoding('latin1').on('data', piece => {
        body += piece
      })
      answer.on('error', error => done({ outcome: error.code ?? 'broken' }))
      answer.on('end', () => done({ outcome: String(answer.statusCode), body }))
    })
    const timer = setTimeout(() => {
      done({ outcome: `no answer in ${timeoutMs} ms` })
      asked.destroy()
    }, timeoutMs)
    asked.on('error', error => done({ outcome: error.code ?? error.message }))
    asked.end()
  })
}

/** Calls again and again, as a well-behaved caller does, and remembers the calls that went wrong. */
export class Caller {
  failures = []
  calls = 0
  #agent
  #options
  #isRunning = true
  #running

  constructor(options) {
    this.#options = options
    const kept = { keepAlive: true, maxSockets: 1 }
    this.#agent = options.gateway.isTls ? new TlsAgent(kept) : new Agent(kept)
    this.#running = this.#run()
  }

  async stop() {
    this.#isRunning = false
    await this.#running
    this.#agent.destroy()
    this.#options.calls?.close()
  }

  async #run() {
    const { gateway, path, everyMs, accepts, withinMs, isFresh = false, calls } = this.#options
    while (this.#isRunning) {
      const call = await (calls?.call(path) ?? callOnce(gateway, path, { agent: isFresh ? false : this.#agent }))
      this.calls++
      const text = `a well-behaved call of ${path}: ${call.outcome} after ${Math.round(call.ms)} ms`
      if (!accepts(call)) this.failures.push({ kind: 'failed', text })
      else if (call.fairMs > withinMs) this.failures.push({ kind: 'slow', text })
      await pause(everyMs)
    }
  }
}
