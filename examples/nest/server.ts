// A Nest application with a limit on a whole controller and another on one handler.
// Run it: npm run build && npx tsc -p examples/nest && node examples/nest/dist/server.js
import 'reflect-metadata'
import { Controller, Get, Module, Post } from '@nestjs/common'
import { NestFactory } from '@nestjs/core'
import { createLimiter } from 'diana-limiter'
import { RateLimit } from 'diana-limiter/decorators'
import { DianaModule } from 'diana-limiter/nest'

const limiter = await createLimiter({
  answer: { status: 429 },
  rules: [{ id: 'whole-system', limit: '1000/s' }],
})

@RateLimit({ limit: '5/m', by: 'ip' })
@Controller('orders')
class OrdersController {
  @Get()
  list(): string {
    return 'orders'
  }

  // its own limit, instead of the controller's
  @RateLimit({ limit: '2/m', by: 'ip' })
  @Post()
  order(): string {
    return 'ordered'
  }
}

@Module({ imports: [DianaModule.forRoot(limiter)], controllers: [OrdersController] })
class AppModule {}

const app = await NestFactory.create(AppModule, { logger: ['error'] })
await app.listen(process.env.PORT ?? 3000, '127.0.0.1')
export const url = `${await app.getUrl()}/orders`
console.log(`listening on ${url}`)

export async function close(): Promise<void> {
  await app.close()
  await limiter.close()
}
