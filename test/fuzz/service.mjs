import { once } from 'node:events'
import { createServer as createHttpServer } from 'node:http'
import { createServer } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { hash } from './random.mjs'

const requestLine = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+ [\x21-\x7e\x80-\xff]+ HTTP\/1\.1$/
const headerLine = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+:[\t\x20-\x7e\x80-\xff]*$/
const okAnswer = { early: false, steps: [{ send: 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok' }] }

/** A service over raw sockets that answers as the round says, and looks at the bytes that reach it. */
export async function startHostileService() {
  const connections = new Set()
  const malformed = []
  let answers = []
  let requests = 0
  const server = createServer({ allowHalfOpen: true }, socket => {
    const connection = new ServiceConnection(socket, {
      answerTo: head => chooseAnswer(head, answers),
      onRequest: () => requests++,
      onMalformed: what => malformed.push(what),
    })
    connections.add(connection)
    socket.on('close', () => connections.delete(connection))
  })
  const url = await listen(server)
  return {
    url,
    malformed,
    setAnswers(list) {
      answers = list
    },
    get requests() {
      return requests
    },
    /** Connections with a call that is not over. */
    get busy() {
      return [...connections].filter(({ isBusy }) => isBusy).length
    },
    get open() {
      return connections.size
    },
    close() {
      server.close()
      for (const { socket } of connections) socket.destroy()
    },
  }
}

function chooseAnswer(head, answers) {
  const line = head.slice(0, head.indexOf('\r\n'))
  if (answers.length === 0 || line.includes('answer=ok')) return okAnswer
  const [, named] = /answer=(\d+)/.exec(line) ?? []
  return answers[named === undefined ? hash(line) % answers.length : Number(named) % answers.length]
}

class ServiceConnection {
  isBusy = false
  #received = ''
  #hooks
  #state = 'head'
  #bodyLeft = 0
  #answer
  #isAnswering = false
  #isOver = false

  constructor(socket, hooks) {
    this.socket = socket
    this.#hooks = hooks
    socket.setEncoding('latin1')
    socket.on('error', () => {})
    socket.on('end', () => socket.destroy())
    socket.on('data', text => {
      this.#received = this.#isOver ? '' : this.#received + text
      this.#read()
    })
  }

  #read() {
    if (this.#isOver) return
    if (this.#received !== '') this.isBusy = true
    if (this.#state === 'head') this.#readHead()
    if (this.#state === 'length') {
      const taken = Math.min(this.#bodyLeft, this.#received.length)
      this.#bodyLeft -= taken
      this.#received = this.#received.slice(taken)
      if (this.#bodyLeft === 0) this.#finishRequest()
    } else if (this.#state === 'chunked') {
      const end = this.#received.search(/(?:^|\r\n)0\r\n\r\n/)
      if (end >= 0) {
        this.#received = ''
        this.#finishRequest()
      } else this.#received = this.#received.slice(-8)
    } else if (this.#state === 'answering') this.#received = ''
  }

  #readHead() {
    const end = this.#received.indexOf('\r\n\r\n')
    if (end < 0) return
    const head = this.#received.slice(0, end)
    this.#received = this.#received.slice(end + 4)
    this.#hooks.onRequest()
    const fault = faultIn(head)
    if (fault) this.#hooks.onMalformed(`${fault}: ${JSON.stringify(head.slice(0, 2000))}`)
    this.#answer = this.#hooks.answerTo(head)
    const length = Number(/\r\ncontent-length: *(\d+)/i.exec(head)?.[1] ?? 0)
    this.#bodyLeft = length
    this.#state = /\r\ntransfer-encoding: *chunked/i.test(head) ? 'chunked' : 'length'
    if (this.#answer.early) void this.#play()
  }

  #finishRequest() {
    this.#state = 'answering'
    if (!this.#isAnswering) void this.#play()
  }

  async #play() {
    this.#isAnswering = true
    for (const step of this.#answer.steps) {
      if (this.socket.destroyed) return
      if (step === 'hang') return
      if (step === 'end') this.#end()
      else if (step === 'reset') this.socket.resetAndDestroy()
      else if (step.pause !== undefined) await pause(step.pause)
      else await this.#send(step)
    }
    this.#isAnswering = false
    // an early answer leaves the rest of the request on its way
    if (this.#state === 'answering') {
      this.#state = 'head'
      this.isBusy = false
      this.#read()
    }
  }

  /** What comes now, as through a WebSocket, is no request. */
  #end() {
    this.socket.end()
    this.#isOver = true
    this.isBusy = false
  }

  async #send({ send, times = 1 }) {
    const bytes = bytesOf(send)
    for (let left = times; left > 0 && !this.socket.destroyed; left--) {
      if (!this.socket.write(bytes))
        await Promise.race([once(this.socket, 'drain'), once(this.socket, 'close')]).catch(() => {})
    }
  }
}

let large = { text: '', bytes: Buffer.alloc(0) }

/** The bytes of a text; those of a large one are shared by the connections that send it. */
function bytesOf(text) {
  if (text.length < 65_536) return Buffer.from(text, 'latin1')
  if (large.text !== text) large = { text, bytes: Buffer.from(text, 'latin1') }
  return large.bytes
}

/** What is wrong with a request that the gateway sent on. */
function faultIn(head) {
  const [first, ...lines] = head.split('\r\n')
  if (!requestLine.test(first)) return 'a request line that is not HTTP'
  if (lines.some(line => !headerLine.test(line))) return 'a header line that is not HTTP'
  const count = name => lines.filter(line => line.toLowerCase().startsWith(`${name}:`)).length
  if (count('host') !== 1) return `${count('host')} Host headers`
  if (count('content-length') + count('transfer-encoding') > 1) return 'two framings of one body'
  return undefined
}

/** A service that does what it should: it reads a request and then answers with its token. */
export async function startGoodService() {
  const server = createHttpServer((request, response) => {
    const token = String(request.headers['x-token'])
    request.resume().on('end', () => response.setHeader('x-token', token).end(token))
  })
  server.keepAliveTimeout = 60_000
  const url = await listen(server)
  return { url, close: () => server.close() && server.closeAllConnections() }
}

async function listen(server) {
  server.listen(0, '127.0.0.1', 1024)
  await once(server, 'listening')
  return `http://127.0.0.1:${server.address().port}`
}
