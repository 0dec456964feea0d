import { connect } from 'node:http2'
import { apiKey } from '../plan/requests.mjs'
import { startFairTime } from '../round/fair-time.mjs'

let number = 0

/** Well-behaved calls over one connection of HTTP/2, which is opened again if the gateway has closed it. */
export class Http2Calls {
  #gateway
  #localAddress
  #session

  constructor(gateway, localAddress = '127.0.0.1') {
    this.#gateway = gateway
    this.#localAddress = localAddress
  }

  /** One call; resolves to its status and body, or to the error's code, and to its time. */
  call(path, { method = 'GET', body = '', token = `h${++number}`, timeoutMs = 10_000 } = {}) {
    const began = performance.now()
    const fairTime = startFairTime(this.#gateway)
    const headers = { ':path': path, ':method': method, 'x-token': token, 'x-api-key': apiKey }
    return new Promise(resolve => {
      const stream = this.#open().request(headers, { endStream: body === '' })
      let outcome = 'broken'
      let text = ''
      const done = () => {
        clearTimeout(timer)
        resolve({ outcome, body: text, token, ms: performance.now() - began, fairMs: fairTime() })
      }
      const timer = setTimeout(() => stream.destroy(new Error(`no answer in ${timeoutMs} ms`)), timeoutMs)
      stream.on('response', answer => {
        outcome = String(answer[':status'])
      })
      stream.setEncoding('latin1').on('data', piece => {
        text += piece
      })
      stream.on('error', error => {
        outcome = error.message
      })
      // after an early answer, Node's client waits with the end of a stream until its body is sent
      stream.on('end', done)
      stream.on('close', () => {
        if (stream.rstCode !== 0) outcome = `reset by ${stream.rstCode}`
        done()
      })
      if (body !== '') stream.end(body, 'latin1')
    })
  }

  close() {
    this.#session?.destroy()
  }

  #open() {
    if (this.#session === undefined || this.#session.closed || this.#session.destroyed) {
      this.#session = connect(this.#gateway.url, { localAddress: this.#localAddress, rejectUnauthorized: false })
      this.#session.on('error', () => {})
    }
    return this.#session
  }
}

/** A connection of a plan whose calls are all well-behaved and side by side: each must get its own answer. */
export class OrderlyCalls {
  #calls

  constructor(gateway, from) {
    this.#calls = new Http2Calls(gateway, from)
  }

  /** What went wrong, or undefined. */
  async play(planned) {
    const answers = await Promise.all(planned.map(({ path, ...options }) => this.#calls.call(path, options)))
    this.leave()
    const wrong = answers.flatMap(({ outcome, body, token, ms }, at) => {
      const { method, body: sent } = planned[at]
      if (outcome === '200' && body === (method === 'HEAD' ? '' : token)) return []
      return [`a well-behaved ${method} with ${sent.length} bytes over HTTP/2: ${outcome} after ${Math.round(ms)} ms`]
    })
    return wrong.length > 0 ? `${wrong.length} failed, such as ${wrong[0]}` : undefined
  }

  leave() {
    this.#calls.close()
  }
}
