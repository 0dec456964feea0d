import { Agent, request } from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'
import { WebSocket } from 'ws'

const uploadPieces = 20
const uploadPauseMs = 40

/** Callers of all kinds, who call until they are stopped, and remember what failed. */
export class Callers {
  #url
  #running = true
  /** Whether nothing may listen any more, as at the end of the last process. */
  #isLast = false
  #all = []
  failures = []
  counts = { kept: 0, fresh: 0, uploads: 0, streams: 0, webSockets: 0 }
  /** How long streams lasted that were cut, from the moment that `mark` was called. */
  cutAfterMs = []
  #markedAt = Number.POSITIVE_INFINITY

  constructor(url) {
    this.#url = url
    for (let i = 0; i < 4; i++) this.#all.push(this.#keep())
    for (let i = 0; i < 2; i++) this.#all.push(this.#come())
    this.#all.push(this.#upload(), this.#upload(), this.#listen(), this.#listen(), this.#talk(), this.#talk())
  }

  /** A process has been told to end, now. */
  mark({ isLast = false } = {}) {
    this.#markedAt = performance.now()
    this.#isLast = isLast
  }

  async stop() {
    this.#running = false
    await Promise.all(this.#all)
  }

  #fail(kind, what) {
    // a connection that nobody has accepted when nobody listens any more is no call
    if (this.#isLast && ['ECONNREFUSED', 'ECONNRESET before a call was accepted'].includes(what)) return
    this.failures.push(`${kind}: ${what}`)
  }

  /** Calls one after the other on a connection that is kept. */
  async #keep() {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    while (this.#running && !(await this.#get('kept', { agent }))) this.counts.kept++
    agent.destroy()
  }

  /** Each call on a connection of its own. */
  async #come() {
    while (this.#running && !(await this.#get('fresh', { agent: false }))) this.counts.fresh++
  }

  /** True if there is no use in going on. */
  #get(kind, options) {
    return new Promise(resolve => {
      const asked = request(this.#url, options, answer => {
        answer.resume()
        answer.on('error', error => {
          this.#fail(kind, `broken by ${error.code}`)
          resolve(this.#isLast)
        })
        answer.on('end', () => {
          if (answer.statusCode !== 200) this.#fail(kind, `status ${answer.statusCode}`)
          resolve(false)
        })
      })
      asked.on('error', error => {
        const isNew = error.code === 'ECONNRESET' && !asked.reusedSocket
        this.#fail(kind, isNew ? 'ECONNRESET before a call was accepted' : error.code)
        resolve(this.#isLast)
      })
      asked.end()
    })
  }

  /** A body that takes a while. */
  async #upload() {
    while (this.#running && !this.#isLast) {
      const outcome = await new Promise(resolve => {
        const asked = request(this.#url, { method: 'POST', agent: false }, async answer => {
          const pieces = await answer.toArray().catch(error => [`broken by ${error.code}`])
          resolve(pieces.join(''))
        })
        asked.on('error', error => resolve(error.code))
        void (async () => {
          for (let i = 0; i < uploadPieces; i++) {
            asked.write('0123456789')
            await pause(uploadPauseMs)
          }
          asked.end()
        })()
      })
      if (outcome === String(uploadPieces * 10)) this.counts.uploads++
      else this.#fail('upload', outcome)
    }
  }

  /** A stream of events, opened again whenever it is cut. */
  async #listen() {
    while (this.#running && !this.#isLast) {
      await new Promise(resolve => {
        const asked = request(`${this.#url}/events`, { agent: false }, answer => {
          this.counts.streams++
          answer.resume()
          const timer = setInterval(() => this.#running || asked.destroy(), 20)
          answer.on('error', () => {})
          answer.once('close', () => {
            clearInterval(timer)
            if (this.#running) this.cutAfterMs.push(performance.now() - this.#markedAt)
            resolve()
          })
        })
        asked.on('error', error => {
          if (this.#running) this.#fail('stream', error.code)
          resolve()
        })
        asked.end()
      })
    }
  }

  /** A WebSocket, opened again whenever it is closed. */
  async #talk() {
    while (this.#running && !this.#isLast) {
      await new Promise(resolve => {
        const socket = new WebSocket(this.#url.replace('http', 'ws'))
        let isOpen = false
        const timer = setInterval(() => {
          if (!this.#running) socket.terminate()
          else if (isOpen) socket.send('hello')
        }, 50)
        socket.once('open', () => {
          isOpen = true
          this.counts.webSockets++
        })
        socket.on('error', error => {
          if (!isOpen) this.#fail('WebSocket', error.code ?? error.message)
        })
        socket.once('close', () => {
          clearInterval(timer)
          resolve()
        })
      })
    }
  }
}
