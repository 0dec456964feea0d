import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

/** An HTTP server for tests, which keeps its port when it is stopped and started. */
export interface FakeHttp {
  /** `127.0.0.1:port`. */
  readonly authority: string
  stop(): Promise<void>
  start(): Promise<void>
}

/** What a test server knows of one request. */
export interface Asked {
  readonly request: IncomingMessage
  readonly url: URL
  readonly body: string
}

export type Answering = (asked: Asked, response: ServerResponse) => void

export async function createHttpDouble(answer: Answering): Promise<FakeHttp> {
  const server = createServer(async (request, response) => {
    let body = ''
    for await (const chunk of request.setEncoding('utf8')) body += chunk
    answer({ request, body, url: new URL(request.url ?? '/', 'http://double') }, response)
  })
  // so that only the client's side counts as open
  server.on('connection', socket => socket.unref())
  const listen = (port: number) => new Promise<void>(resolve => server.listen(port, '127.0.0.1', resolve))
  await listen(0)
  const { port } = server.address() as AddressInfo
  return {
    authority: `127.0.0.1:${port}`,
    start: () => listen(port),
    stop: () =>
      new Promise(resolve => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

export function send(response: ServerResponse, status: number, body = '', headers: Record<string, string> = {}): void {
  response.writeHead(status, headers).end(body)
}

/** Answers that a server delays until a change or a timeout. */
export class Held {
  readonly #answers = new Set<() => void>()

  /** `answer` is called once: at the next `release`, or after `ms`. */
  hold(response: ServerResponse, ms: number, answer: (released: boolean) => void): void {
    const end = (released: boolean) => {
      clearTimeout(timer)
      this.#answers.delete(release)
      if (!response.destroyed) answer(released)
    }
    const release = () => end(true)
    const timer = setTimeout(end, ms, false).unref()
    this.#answers.add(release)
    response.on('close', () => {
      clearTimeout(timer)
      this.#answers.delete(release)
    })
  }

  release(): void {
    for (const answer of [...this.#answers]) answer()
  }

  get size(): number {
    return this.#answers.size
  }
}
