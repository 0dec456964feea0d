import type { OutgoingHttpHeaders } from 'node:http'
import { buildConnector, Client } from 'undici'
import { AnswerHeads } from './answer-heads.ts'
import { readAfterFailedWrites } from './failed-writes.ts'
import { sendTrailers } from './request-trailers.ts'

export interface ServiceClientOptions {
  readonly connectMs: number
  /** How large the headers of an answer may be. */
  readonly maxHeadBytes: number
}

/** What a connection asks of the call that it carries. */
export interface ServiceCall {
  /** The trailers behind its body, asked for when the body has ended. */
  trailers(): OutgoingHttpHeaders
}

const keepAliveMs = 4000

/** One connection to a service, and what is read of its answers before undici does. */
export class ServiceClient extends Client {
  readonly answers: AnswerHeads
  #call: ServiceCall | undefined

  constructor(origin: string, { connectMs, maxHeadBytes }: ServiceClientOptions) {
    const answers = new AnswerHeads()
    const connect = buildConnector({ timeout: connectMs, rejectUnauthorized: true })
    super(origin, {
      pipelining: 1,
      connect: (options, done) =>
        connect(options, (...result) => {
          const [, socket] = result
          if (socket) {
            answers.attach(socket)
            readAfterFailedWrites(socket)
            sendTrailers(socket, () => this.#call?.trailers() ?? {})
          }
          done(...result)
        }),
      maxHeaderSize: maxHeadBytes,
      // a service that closes idle connections after five seconds, as Node's do, says so; others are believed
      keepAliveTimeout: keepAliveMs,
    })
    this.answers = answers
  }

  /** A call is sent now: what comes next is its answer. */
  expectAnswer(call: ServiceCall): void {
    this.#call = call
    this.answers.expect()
  }
}
