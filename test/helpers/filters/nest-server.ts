import 'reflect-metadata'
import { pipeline, Readable } from 'node:stream'
import { Controller, Get, HttpCode, Module, Post, Req, Res } from '@nestjs/common'
import { NestFactory } from '@nestjs/core'
import type { Request, Response } from 'express'
import { RateLimit } from '../../../packages/limiter/src/decorators/rate-limit.ts'
import { DianaModule } from '../../../packages/limiter/src/filters/nest.ts'
import type { Limiter } from '../../../packages/limiter/src/limiter.ts'
import type { FilterService } from '../../../packages/limiter/src/testing/filters/service.ts'
import { login, type ServerUnderTest } from '../../../packages/limiter/src/testing/filters/suite.ts'
import { listen } from './listen.ts'

/** The service of the filter suite behind Nest's guard; decorators by hand, since the tests' compiler may not know Nest's. */
export async function startNest(limiter: Limiter, service: FilterService): Promise<ServerUnderTest> {
  class Calls {
    hello(): string {
      return service.hello()
    }
    login(): string {
      return service.login()
    }
    slow(): Promise<string> {
      return service.slow()
    }
    user({ params }: Request<{ id: string }>, response: Response): void {
      response.send(service.user(params.id))
    }
    stream(_request: Request, response: Response): void {
      pipeline(Readable.from(service.stream()), response, () => {})
    }
    broken(): never {
      service.broken()
    }
    echo(request: Request, response: Response): void {
      pipeline(request, response, () => {})
    }
  }
  const routes = [
    [Get('hello'), 'hello'],
    [Get('login'), 'login'],
    [RateLimit(login), 'login'],
    [Get('slow'), 'slow'],
    [Get('users/:id'), 'user'],
    [Get('stream'), 'stream'],
    [Get('broken'), 'broken'],
    [Post('echo'), 'echo'],
    [HttpCode(200), 'echo'],
  ] as const
  for (const [route, name] of routes) {
    ;(route as MethodDecorator)(Calls.prototype, name, Object.getOwnPropertyDescriptor(Calls.prototype, name)!)
  }
  for (const name of ['user', 'stream', 'echo']) {
    Req()(Calls.prototype, name, 0)
    Res()(Calls.prototype, name, 1)
  }
  Controller()(Calls)
  class Application {}
  Module({ imports: [DianaModule.forRoot(limiter)], controllers: [Calls] })(Application)
  const app = await NestFactory.create(Application, { logger: false, bodyParser: false })
  await app.init()
  return listen(app.getHttpServer())
}
