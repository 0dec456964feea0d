import type { ArgumentsHost, ExceptionFilter } from '@nestjs/common'
import type { HttpAdapterHost } from '@nestjs/core'
import { refusal } from '../../answers/answer.ts'
import type { LimitedError } from '../../answers/limited-error.ts'
import { bodyOf } from './nest-guard.ts'

interface SocketClient {
  emit?(event: string, ...args: unknown[]): unknown
}

/**
 * Answers errors of `@RateLimit` on services as the guard answers refused requests. Without it, Nest's own handler answers them with the
 * right status, but without headers.
 */
export class LimitedFilter implements ExceptionFilter<LimitedError> {
  readonly #host: HttpAdapterHost

  constructor(host: HttpAdapterHost) {
    this.#host = host
  }

  /** Returns nothing: Nest answers messages and calls of GraphQL itself then, but not events of sockets. */
  catch(error: LimitedError, host: ArgumentsHost): void {
    if (host.getType() === 'http') void this.#answer(error, host.switchToHttp().getResponse())
    else if (host.getType() === 'ws') {
      const { message } = error
      host.switchToWs().getClient<SocketClient>().emit?.('exception', { status: 'error', message })
    }
  }

  async #answer(error: LimitedError, response: unknown): Promise<void> {
    const { httpAdapter } = this.#host
    if (httpAdapter.isHeadersSent(response)) {
      httpAdapter.end(response)
      return
    }
    for (const [name, value] of Object.entries(error.headers)) httpAdapter.setHeader(response, name, value)
    httpAdapter.reply(response, await bodyOf(refusal(error.verdict, Date.now())), error.statusCode)
  }
}
