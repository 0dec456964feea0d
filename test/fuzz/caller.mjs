import { Agent, request } from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'
import { startFairTime } from './fair-time.mjs'
import { apiKey } from './requests.mjs'

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
    const asked = request(gateway.url + path, { agent, headers: { 'x-token': token, 'x-api-key': apiKey } }, answer => {
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
  #agent = new Agent({ keepAlive: true, maxSockets: 1 })
  #options
  #isRunning = true
  #running

  constructor(options) {
    this.#options = options
    this.#running = this.#run()
  }

  async stop() {
    this.#isRunning = false
    await this.#running
    this.#agent.destroy()
  }

  async #run() {
    const { gateway, path, everyMs, accepts, withinMs, isFresh = false } = this.#options
    while (this.#isRunning) {
      const call = await callOnce(gateway, path, { agent: isFresh ? false : this.#agent })
      this.calls++
      const text = `a well-behaved call of ${path}: ${call.outcome} after ${Math.round(call.ms)} ms`
      if (!accepts(call)) this.failures.push({ kind: 'failed', text })
      else if (call.fairMs > withinMs) this.failures.push({ kind: 'slow', text })
      await pause(everyMs)
    }
  }
}
