import dns from 'node:dns/promises'
import { connect, isIP, Socket } from 'node:net'
import { type ConnectionOptions, connect as connectTls } from 'node:tls'
import { type Repeated, repeat } from '../../../common/background.ts'

/** The options of an ioredis client with the address of its server. */
interface Endpoint {
  readonly host?: string | undefined
  readonly port?: number | undefined
  readonly path?: string | undefined
  readonly tls?: ConnectionOptions | undefined
}

/** While no attempt has been answered, another one begins beside it. */
const ATTEMPT_MS = 250
const CONNECT_MS = 1000

/**
 * Connects an ioredis client by several attempts beside each other, of which the first to succeed is taken: packets of
 * one may have been lost, and the first address of a name may be dead. ioredis makes one of these for each client.
 */
export class RedisConnector {
  /** Why the last connect failed; ioredis reports it. */
  firstError: Error | undefined
  readonly #endpoint: Endpoint
  #race: Race | undefined
  #socket: Socket | undefined

  constructor(options: unknown) {
    this.#endpoint = options as Endpoint
  }

  check(): boolean {
    return true
  }

  /** A connected socket; or a destroyed one if the connect failed, after which ioredis tries again. */
  async connect(): Promise<Socket> {
    this.firstError = undefined
    this.#race = new Race(this.#endpoint)
    try {
      this.#socket = await this.#race.run()
    } catch (error) {
      this.firstError = error as Error
      this.#socket = new Socket().destroy()
    }
    this.#race = undefined
    return this.#socket
  }

  /** The reason why a pending connect takes long, if known. */
  get pending(): Error | undefined {
    return this.#race?.isInHandshake ? noHandshake() : undefined
  }

  disconnect(): void {
    this.#race?.end(new Error('Connection is closed.'))
    this.#socket?.destroySoon()
  }
}

class Race {
  readonly #endpoint: Endpoint
  readonly #sockets = new Set<Socket>()
  readonly #failed = new Set<string>()
  #timer: NodeJS.Timeout | undefined
  #repeated: Repeated | undefined
  #addresses: readonly string[] = []
  #attempts = 0
  #isOver = false
  /** The server has accepted a connection and has not answered the TLS handshake. */
  isInHandshake = false
  #resolve: (socket: Socket) => void = () => {}
  #reject: (error: Error) => void = () => {}

  constructor(endpoint: Endpoint) {
    this.#endpoint = endpoint
  }

  run(): Promise<Socket> {
    return new Promise((resolve, reject) => {
      this.#resolve = resolve
      this.#reject = reject
      // a process that was stalled reads first what has arrived meanwhile
      this.#timer = setTimeout(() => setImmediate(() => this.#giveUp()), CONNECT_MS)
      this.#findAddresses()
        .then(addresses => this.#begin(addresses))
        .catch(error => this.end(error))
    })
  }

  end(error: Error): void {
    this.#finish()
    this.#reject(error)
  }

  #giveUp(): void {
    if (!this.#isOver) this.end(this.isInHandshake ? noHandshake() : timedOut())
  }

  async #findAddresses(): Promise<readonly string[]> {
    const { path, host = 'localhost' } = this.#endpoint
    if (path !== undefined && path !== null) return [path]
    if (isIP(host)) return [host]
    const found = await dns.lookup(host, { all: true, verbatim: true })
    return found.map(({ address }) => address)
  }

  #begin(addresses: readonly string[]): void {
    if (this.#isOver) return
    this.#addresses = addresses
    this.#attempt()
    this.#repeated = repeat('connections to Redis', ATTEMPT_MS, () => this.#attempt())
  }

  #attempt(): void {
    const address = this.#addresses[this.#attempts++ % this.#addresses.length]!
    const socket = this.#open(address)
    this.#sockets.add(socket)
    if (this.#endpoint.tls) {
      socket.once('connect', () => {
        this.isInHandshake = true
      })
    }
    socket.once(this.#endpoint.tls ? 'secureConnect' : 'connect', () => {
      this.#sockets.delete(socket)
      this.#finish()
      this.#resolve(socket)
    })
    // stays: a socket without a listener for errors would end the process
    socket.on('error', error => {
      this.#sockets.delete(socket)
      this.#failed.add(address)
      if (this.#isOver) return
      if (this.#failed.size >= this.#addresses.length) this.end(error)
      else if (this.#attempts < this.#addresses.length) this.#attempt()
    })
  }

  #open(address: string): Socket {
    const { path, host, port = 6379, tls } = this.#endpoint
    const where = path === undefined || path === null ? { host: address, port } : { path }
    if (!tls) return connect(where)
    const servername = host !== undefined && isIP(host) === 0 ? { servername: host } : {}
    return connectTls({ ...where, ...servername, ...tls })
  }

  #finish(): void {
    this.#isOver = true
    clearTimeout(this.#timer)
    this.#repeated?.stop()
    for (const socket of this.#sockets) socket.destroy()
  }
}

function noHandshake(): Error {
  return new Error('no answer to the TLS handshake')
}

function timedOut(): Error {
  return Object.assign(new Error('connect ETIMEDOUT'), { code: 'ETIMEDOUT', syscall: 'connect' })
}
