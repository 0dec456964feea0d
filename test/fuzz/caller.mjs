import { Agent, request } from 'node:http'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { setTimeout as pause } from 'node:timers/promises'
import { apiKey } from './requests.mjs'

let number = 0

/** One call; resolves to its status, body and time, or to the error's code. */
export function callOnce(url, { agent = false, timeoutMs = 5000 } = {}) {
  const token = `t${++number}`
  const began = performance.now()
  return new Promise(resolve => {
    const done = outcome => {
      clearTimeout(timer)
      resolve({ ...outcome, token, ms: performance.now() - began })
    }
    const asked = request(url, { agent, headers: { 'x-token': token, 'x-api-key': apiKey } }, answer => {
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
  slowestMs = 0
  #agent = new Agent({ keepAlive: true, maxSockets: 1 })
  #options
  #isRunning = true
  #running
  #delay = monitorEventLoopDelay({ resolution: 10 })

  constructor(options) {
    this.#options = options
    this.#delay.enable()
    this.#running = this.#run()
  }

  /** The ports of the connections that it keeps. */
  get ports() {
    return [this.#agent.sockets, this.#agent.freeSockets].flatMap(sockets =>
      Object.values(sockets)
        .flat()
        .map(socket => socket.localPort),
    )
  }

  async stop() {
    this.#isRunning = false
    await this.#running
    this.#agent.destroy()
    this.#delay.disable()
  }

  async #run() {
    const { url, everyMs, accepts, withinMs, isFresh = false } = this.#options
    while (this.#isRunning) {
      this.#delay.reset()
      const call = await callOnce(url, { agent: isFresh ? false : this.#agent, timeoutMs: withinMs + 4000 })
      this.calls++
      this.slowestMs = Math.max(this.slowestMs, call.ms)
      // the time that this process itself was busy is not the gateway's
      const ms = call.ms - this.#delay.max / 1e6
      if (!accepts(call))
        this.failures.push({ kind: 'failed', text: `${url}: ${call.outcome} after ${Math.round(call.ms)} ms` })
      else if (ms > withinMs)
        this.failures.push({ kind: 'slow', text: `${url}: ${call.outcome} after ${Math.round(call.ms)} ms` })
      await pause(everyMs)
    }
  }
}
