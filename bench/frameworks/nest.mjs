import 'reflect-metadata'
import { Controller, Get, Module } from '@nestjs/common'
import { APP_GUARD, NestFactory } from '@nestjs/core'
import { ThrottlerGuard, ThrottlerModule } from '@nestjs/throttler'
import { DianaModule } from '../../packages/limiter/dist/filters/nest.js'
import { fourKeys, fourRules, MINUTE, oneRule, order, PLENTY } from './limits.mjs'

class Orders {
  find() {
    return order
  }
}
// what TypeScript makes of @Controller('orders') and @Get()
Get()(Orders.prototype, 'find', Object.getOwnPropertyDescriptor(Orders.prototype, 'find'))
Controller('orders')(Orders)

async function serve(...imports) {
  class Application {}
  Module({ imports, controllers: [Orders] })(Application)
  const app = await NestFactory.create(Application, { logger: false, abortOnError: false })
  await app.init()
  return app.getHttpServer()
}

const header = (request, name) => request.headers[name]

function peer(...throttlers) {
  class Throttling {}
  Module({
    imports: [ThrottlerModule.forRoot(throttlers.map(one => ({ ttl: MINUTE, limit: PLENTY, ...one })))],
    providers: [{ provide: APP_GUARD, useClass: ThrottlerGuard }],
  })(Throttling)
  return Throttling
}

const four = fourKeys(header, request => request.path).map((getTracker, i) => ({ name: `limit-${i}`, getTracker }))

export const subjects = {
  bare: () => serve(),
  'diana, one rule': async () => serve(await DianaModule.forRoot(await oneRule())),
  'diana, four rules': async () => serve(await DianaModule.forRoot(await fourRules())),
  '@nestjs/throttler': () => serve(peer({ getTracker: request => header(request, 'x-account-id') })),
  '@nestjs/throttler, four throttlers': () => serve(peer(...four)),
}
