import { connect } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { connect as connectTls } from 'node:tls'

/** One attacker's connection: plays its steps against the gateway and counts what came back. */
export class AttackingConnection {
  #socket
  /** The same, or what TLS runs over. */
  #transport
  #statuses
  #isOver = false
  #whenOver = []
  #tokens = []
  #rest = ''

  constructor({ port, isTls }, { from, protocol, statuses }) {
    this.#statuses = statuses
    this.#transport = connect({ port, host: '127.0.0.1', localAddress: from, allowHalfOpen: true })
    this.#transport.setNoDelay(true)
    this.#transport.on('error', () => {})
    this.#socket = isTls
      ? connectTls({ socket: this.#transport, ALPNProtocols: [protocol], rejectUnauthorized: false })
      : this.#transport
    this.#socket.on('error', () => {})
    this.#socket.on('data', bytes => this.#read(bytes))
    for (const event of ['end', 'close']) {
      this.#socket.on(event, () => {
        this.#isOver = true
        for (const tell of this.#whenOver.splice(0)) tell()
      })
    }
  }

  /** What went wrong, or undefined. */
  async play(steps) {
    for (const step of steps) {
      if (step === 'end') this.#socket.end()
      else if (step === 'reset') this.#transport.resetAndDestroy()
      else if (step === 'close') this.#socket.destroy()
      else if (step === 'stopReading') this.#socket.pause()
      else if (step === 'resumeReading') this.#socket.resume()
      else if (step.pause !== undefined) await pause(step.pause)
      else if (step.write !== undefined) this.#write(step)
      else if (step.dribble !== undefined) await this.#dribble(step)
      else if (step.untilClosed !== undefined) {
        if (!(await this.#closedWithin(step.untilClosed))) return `no end of the answers within ${step.untilClosed} ms`
        if (step.tokens !== undefined && !isEqual(this.#tokens, step.tokens)) {
          return `answers ${this.#tokens} in place of ${step.tokens}`
        }
      }
    }
    return undefined
  }

  /** Resolves when the gateway has ended the connection. */
  get over() {
    return this.#isOver ? Promise.resolve() : new Promise(resolve => this.#whenOver.push(resolve))
  }

  leave() {
    this.#socket.destroy()
    this.#transport.destroy()
  }

  #write({ write, times = 1 }) {
    if (!this.#socket.writable) return
    this.#socket.write(Buffer.from(times === 1 ? write : write.repeat(times), 'latin1'))
  }

  async #dribble({ dribble, bytes, everyMs }) {
    for (let at = 0; at < dribble.length && this.#socket.writable; at += bytes) {
      this.#socket.write(Buffer.from(dribble.slice(at, at + bytes), 'latin1'))
      await pause(everyMs)
    }
  }

  async #closedWithin(ms) {
    const timer = new AbortController()
    const closed = this.over.then(() => true)
    const late = pause(ms, false, { signal: timer.signal }).catch(() => false)
    const isClosed = await Promise.race([closed, late])
    timer.abort()
    return isClosed
  }

  /** Finds status lines and tokens; large bodies have no line ends and are passed over. */
  #read(bytes) {
    if (bytes.length > 4096 && !bytes.includes('\r\n')) return
    const lines = (this.#rest + bytes.toString('latin1')).split('\r\n')
    this.#rest = lines.pop().slice(-200)
    for (const line of lines) {
      // a body may stand before the status line of the next answer
      const [, status] = /HTTP\/1\.1 (\d{3})/.exec(line.slice(-200)) ?? []
      if (status) this.#statuses.set(status, (this.#statuses.get(status) ?? 0) + 1)
      if (/^x-token: /i.test(line)) this.#tokens.push(line.slice(9))
    }
  }
}

const isEqual = (one, other) => one.length === other.length && one.every((token, index) => token === other[index])
