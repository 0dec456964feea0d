import 'reflect-metadata'
import { Catch, Controller, Get, type HttpException, Module, UseGuards } from '@nestjs/common'
import { NestFactory } from '@nestjs/core'
import { listen } from '@test/filters/listen'
import type { Response } from 'express'
import { afterEach, expect, test, vi } from 'vitest'
import { createLimiter, type LimiterOptions } from '../create/create-limiter.ts'
import { RateLimit } from '../decorators/rate-limit.ts'
import type { Limiter } from '../limiter.ts'
import { diana } from './express.ts'
import { DIANA_LIMITER, DianaGuard, DianaModule, type NestRequest, SkipRateLimit } from './nest.ts'

const closing: (() => unknown)[] = []

afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

type Decorator = (target: object, name: string, descriptor: PropertyDescriptor) => unknown

/** Decorates by hand, in Nest's way: the runner of the tests has no decorators. */
function decorate(
  target: new () => object,
  decorators: Record<string, readonly unknown[]>,
  ofClass: unknown[] = [],
): void {
  for (const [name, list] of Object.entries(decorators)) {
    const descriptor = Object.getOwnPropertyDescriptor(target.prototype, name)!
    // the one that is written first is applied last
    for (const decorator of list.toReversed()) (decorator as Decorator)(target.prototype, name, descriptor)
  }
  for (const decorator of ofClass.toReversed()) (decorator as (target: object) => unknown)(target)
}

class Shop {
  list(): string {
    return 'list'
  }
  buy(): string {
    return 'buy'
  }
  pay(): string {
    return 'pay'
  }
}

async function limit(options: LimiterOptions = { rules: [] }): Promise<Limiter> {
  const limiter = await createLimiter({ clock: () => 1_700_000_000_000, ...options })
  closing.push(() => limiter.close())
  return limiter
}

async function start(
  controller: new () => object,
  imports: unknown[],
  prepare = (_app: unknown): void => {},
): Promise<string> {
  class Application {}
  Module({ imports: imports as never[], controllers: [controller] })(Application)
  const app = await NestFactory.create(Application, { logger: false, abortOnError: false })
  prepare(app)
  await app.init()
  const { port, close } = await listen(app.getHttpServer())
  closing.push(close)
  return `http://127.0.0.1:${port}`
}

async function statuses(url: string, ...paths: string[]): Promise<number[]> {
  const list: number[] = []
  for (const path of paths) list.push((await fetch(`${url}${path}`, { headers: { 'x-tenant': 'acme' } })).status)
  return list
}

function annotated(ofClass: unknown[], ofBuy: unknown[], ofPay: unknown[] = []): new () => object {
  class Annotated extends Shop {
    override list(): string {
      return super.list()
    }
    override buy(): string {
      return super.buy()
    }
    override pay(): string {
      return super.pay()
    }
  }
  decorate(Annotated, { list: [Get('list')], buy: [Get('buy'), ...ofBuy], pay: [Get('pay'), ...ofPay] }, [
    Controller(),
    ...ofClass,
  ])
  return Annotated
}

test('the limit of a handler wins over that of its controller, whose other handlers count together', async () => {
  const controller = annotated([RateLimit({ limit: '2/h' })], [RateLimit({ limit: '3/h' })])
  const limiter = await limit()
  const url = await start(controller, [DianaModule.forRoot(limiter)])
  expect(await statuses(url, '/list', '/pay', '/list', '/buy', '/buy', '/buy', '/buy')).toEqual([
    200, 200, 503, 200, 200, 200, 503,
  ])
  expect(limiter.status().rules.map(({ id }) => id)).toEqual(['Annotated', 'Annotated.buy'])
})

test('several limits of a handler are decided together with the matching rules, and a refused call costs nothing', async () => {
  const stacked = [RateLimit({ limit: '3/h' }), RateLimit({ id: 'tenant', limit: '1/h', by: 'header:x-tenant' })]
  const limiter = await limit({ rules: [{ id: 'all', limit: '9/h' }], answer: { status: 429 } })
  const url = await start(annotated([], stacked), [DianaModule.forRoot(limiter)])
  expect(await statuses(url, '/buy', '/buy', '/buy')).toEqual([200, 429, 429])
  const { decisions } = await limiter.peek({ method: 'GET', path: '/' }, { rule: 'Annotated.buy' })
  expect(decisions.map(({ rule, remaining }) => [rule, remaining])).toEqual([
    ['all', 8],
    ['Annotated.buy', 2],
  ])
})

test('the key and cost functions of @RateLimit get the request', async () => {
  const key = (request: NestRequest): string => String(request.headers['x-tenant'])
  const cost = (request: NestRequest): number => Number((request.query as { n: string }).n)
  const words = RateLimit({ limit: '5/h', key: key as never, cost: cost as never })
  const url = await start(annotated([], [words]), [DianaModule.forRoot(await limit())])
  expect(await statuses(url, '/buy?n=3', '/buy?n=3', '/buy?n=2', '/buy?n=1')).toEqual([200, 503, 200, 503])
})

test('a refusal in Nest is an exception whose headers are already set, so that exception filters may answer it', async () => {
  class Own {
    catch(exception: HttpException, host: { getArgByIndex(at: number): Response }): void {
      const { rule } = exception.getResponse() as { rule: string }
      host.getArgByIndex(1).status(418).send(`refused by ${rule}`)
    }
  }
  Catch()(Own)
  const imports = [DianaModule.forRoot(await limit({ rules: [{ id: 'all', limit: '1/h' }] }))]
  const url = await start(annotated([], []), imports, app => {
    ;(app as { useGlobalFilters(filter: unknown): void }).useGlobalFilters(new Own())
  })
  await fetch(`${url}/list`)
  const refused = await fetch(`${url}/list`)
  expect([refused.status, await refused.text()]).toEqual([418, 'refused by all'])
  expect([refused.headers.get('retry-after'), refused.headers.get('cache-control')]).toEqual(['3600', 'no-store'])
})

test('an invalid @RateLimit is reported when the Nest application starts', async () => {
  const limiter = await limit()
  const controller = annotated([], [RateLimit({ limit: 'many' })])
  await expect(start(controller, [DianaModule.forRoot(limiter)])).rejects.toThrow('rule "Annotated.buy": limit must be')
})

test('a guard may be on one controller, and does not count a request twice', async () => {
  const limiter = await limit({ rules: [{ id: 'all', limit: '5/h' }] })
  const guarded = annotated([UseGuards(new DianaGuard(limiter))], [RateLimit({ limit: '2/h' })])
  const url = await start(guarded, [], app => {
    ;(app as { use(filter: unknown): void }).use(diana(limiter))
  })
  // the third is refused by its annotation, and costs nothing by the other rule
  expect(await statuses(url, '/buy', '/buy', '/buy', '/list', '/list', '/list', '/list')).toEqual([
    200, 200, 503, 200, 200, 200, 503,
  ])
})

test('the guard of Nest lets calls pass that are not HTTP', async () => {
  const guard = new DianaGuard(await limit({ rules: [{ id: 'all', limit: '1/h' }] }))
  const context = { getType: () => 'ws', switchToHttp: vi.fn() }
  expect([guard.canActivate(context as never), guard.canActivate(context as never)]).toEqual([true, true])
  expect(context.switchToHttp).not.toHaveBeenCalled()
})

test('a limiter of Nest is created from providers, injected, used by guards, and closed with the application', async () => {
  class Settings {
    readonly limit = '1/h'
  }
  const made: Limiter[] = []
  const module = DianaModule.forRootAsync({
    imports: [{ module: class SettingsModule {}, providers: [Settings], exports: [Settings] }],
    inject: [Settings],
    useFactory: async (settings: Settings) => {
      made.push(await createLimiter({ rules: [{ id: 'all', limit: settings.limit }] }))
      return made[0]!
    },
  })
  const seen: unknown[] = []
  const spy = { provide: 'spy', useFactory: (limiter: Limiter) => seen.push(limiter), inject: [DIANA_LIMITER] }
  const using = annotated([UseGuards(DianaGuard)], [])
  class Application {}
  Module({ imports: [module], controllers: [using], providers: [spy] })(Application)
  const app = await NestFactory.create(Application, { logger: false, abortOnError: false })
  await app.init()
  const { port } = await listen(app.getHttpServer())
  expect(await statuses(`http://127.0.0.1:${port}`, '/list', '/list')).toEqual([200, 503])
  expect(seen).toEqual(made)
  await app.close()
  expect(() => made[0]!.decide({ method: 'GET', path: '/' })).toThrow('closed')
})

test('@SkipRateLimit on a handler or a controller lets its calls pass undecided', async () => {
  const limiter = await limit({ rules: [{ id: 'all', limit: '1/h' }] })
  const some = annotated([RateLimit({ limit: '1/h', by: 'ip' })], [SkipRateLimit()])
  const url = await start(some, [DianaModule.forRoot(limiter)])
  expect(await statuses(url, '/buy', '/buy', '/list', '/list')).toEqual([200, 200, 200, 503])
  const other = await limit({ rules: [{ id: 'all', limit: '1/h' }] })
  const all = await start(annotated([SkipRateLimit()], []), [DianaModule.forRoot(other)])
  expect(await statuses(all, '/list', '/list')).toEqual([200, 200])
})

test('@SkipRateLimit leaves out the rules that it names, those that match and those of @RateLimit', async () => {
  const rules = [
    { id: 'short', limit: '1/h' },
    { id: 'long', limit: '4/h' },
  ]
  const skip = [RateLimit({ id: 'buying', limit: '2/h' }), SkipRateLimit('short')]
  const url = await start(annotated([], skip), [DianaModule.forRoot(await limit({ rules }))])
  expect(await statuses(url, '/buy', '/buy', '/buy', '/list', '/list')).toEqual([200, 200, 503, 200, 503])
  const { headers } = await fetch(`${url}/buy`)
  expect(headers.get('ratelimit-policy')).toBe('"long";q=4;w=3600, "buying";q=2;w=3600')

  const both = annotated(
    [SkipRateLimit('short')],
    [SkipRateLimit('buying', 'long'), RateLimit({ id: 'buying', limit: '1/h' })],
  )
  const other = await start(both, [DianaModule.forRoot(await limit({ rules }))])
  expect(await statuses(other, '/buy', '/buy', '/buy')).toEqual([200, 200, 200])
  expect(await statuses(other, ...Array(5).fill('/list'))).toEqual([200, 200, 200, 200, 503])
  expect(() => SkipRateLimit('')).toThrow('@SkipRateLimit takes ids of rules')
  expect(() => SkipRateLimit({ short: true } as never)).toThrow('@SkipRateLimit takes ids of rules')
})

test('a filter before the guard of Nest decides by the rules that @SkipRateLimit leaves out', async () => {
  const limiter = await limit({ rules: [{ id: 'short', limit: '1/h' }] })
  const url = await start(annotated([], [SkipRateLimit('short')]), [DianaModule.forRoot(limiter)], app => {
    ;(app as { use(filter: unknown): void }).use(diana(limiter))
  })
  expect(await statuses(url, '/buy', '/buy')).toEqual([200, 503])
})

test('@RateLimit on a provider limits its method, and a controller is counted by the guard alone', async () => {
  const limiter = await limit()
  class Mailer {
    send(): string {
      return 'sent'
    }
  }
  const descriptor = Object.getOwnPropertyDescriptor(Mailer.prototype, 'send')!
  const decorator = RateLimit({ limit: '1/h', limiter }) as unknown as (...args: unknown[]) => PropertyDescriptor
  Object.defineProperty(Mailer.prototype, 'send', decorator(Mailer.prototype, 'send', descriptor))
  const mailer = new Mailer()
  expect(mailer.send()).toBe('sent')
  expect(() => mailer.send()).toThrow('rule "Mailer.send" refuses this call')
})
