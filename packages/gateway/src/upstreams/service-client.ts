import type { OutgoingHttpHeaders } from 'node:http'
import { buildConnector, Client } from 'undici'
import { AnswerHeads } from './answer-heads.ts'
import { readAfterFailedWrites } from './failed-writes.ts'
import { sendTrailers } from './request-trailers.ts'

/** As undici's, with how a socket is opened. */
export type ServiceClientOptions = Omit<Client.Options, 'connect'> & { readonly connect: buildConnector.BuildOptions }

/** What a connection asks of the call that it carries. */
export interface ServiceCall {
  /** The trailers behind its body, asked for when the body has ended. */
  trailers(): OutgoingHttpHeaders
}

/** One connection to a service, and what is read of its answers before undici does. */
export class ServiceClient extends Client {
  readonly answers: AnswerHeads
  #call: ServiceCall | undefined

  constructor(origin: string, { connect, ...options }: ServiceClientOptions) {
    const answers = new AnswerHeads()
    const open = buildConnector(connect)
    super(origin, {
      ...options,
      connect: (place, done) =>
        open(place, (...result) => {
          const [, socket] = result
          if (socket) {
            answers.attach(socket)
            readAfterFailedWrites(socket)
            sendTrailers(socket, () => this.#call?.trailers() ?? {})
          }
          done(...result)
        }),
    })
    this.answers = answers
  }

  /** A call is sent now: what comes next is its answer. */
  expectAnswer(call: ServiceCall): void {
    this.#call = call
    this.answers.expect()
  }
}
