import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import type { defineAnnotated } from '@test/annotated'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { createLimiter } from '../create/create-limiter.ts'
import type { Limiter } from '../limiter.ts'
import { RateLimit, rateLimitsOf } from './rate-limit.ts'

const root = fileURLToPath(new URL('../../../..', import.meta.url))
const source = join(root, 'test/helpers/annotated.ts')
const compiler = join(root, 'node_modules/.bin/tsc')
let folder: string
let limiter: Limiter
const clock = () => 1_794_712_345_678

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'diana-annotated-'))
})
afterAll(() => rm(folder, { recursive: true }))
beforeEach(async () => {
  limiter = await createLimiter({ rules: [], clock })
})
afterEach(() => limiter.close())

/** The runner of the tests has no decorators of its own. */
async function compile(experimentalDecorators: boolean): Promise<typeof defineAnnotated> {
  const outDir = join(folder, String(experimentalDecorators))
  const config = join(folder, `${experimentalDecorators}.json`)
  const compilerOptions = {
    ...{ target: 'es2023', module: 'nodenext', verbatimModuleSyntax: true, rewriteRelativeImportExtensions: true },
    ...{ noCheck: true, types: [], rootDir: root, outDir, experimentalDecorators },
  }
  await writeFile(join(folder, 'package.json'), '{ "type": "module" }')
  await writeFile(config, JSON.stringify({ compilerOptions, files: [source] }))
  await promisify(execFile)(compiler, ['-p', config])
  const module = (await import(pathToFileURL(join(outDir, 'test/helpers/annotated.js')).href)) as {
    defineAnnotated: typeof defineAnnotated
  }
  return module.defineAnnotated
}

function outcomeOf(call: () => unknown): unknown {
  try {
    return call()
  } catch (error) {
    return (error as { code?: string }).code ?? (error as Error).message
  }
}

describe.each([
  ['the standard’s way', false],
  ['TypeScript’s older way (experimentalDecorators)', true],
])('@RateLimit in %s', (_way, experimentalDecorators) => {
  let define: typeof defineAnnotated
  beforeAll(async () => {
    define = await compile(experimentalDecorators)
  }, 60_000)

  it('@RateLimit on a class limits its methods together, and a method with its own limit by that alone', () => {
    const { Shop } = define(RateLimit, limiter)
    const [one, other] = [new Shop(), new Shop()]
    expect([one.orders(), one.bills(), other.orders(), one.bills()]).toEqual([
      ...['shop orders', 'shop bills'],
      ...['shop orders', 'shop bills'],
    ])
    expect(outcomeOf(() => other.bills())).toBe('LIMITED')
    expect(one.sms('u1')).toBe('sms to u1')
    expect(outcomeOf(() => other.sms('u1'))).toBe('LIMITED')
    expect(one.sms('u2')).toBe('sms to u2')
    expect(one.total).toBe(7)
    expect(limiter.status().rules.map(({ id }) => id)).toEqual(['Shop', 'Shop.sms'])
  })

  it('a refused method throws an error with the verdict', () => {
    const { Shop } = define(RateLimit, limiter)
    const shop = new Shop()
    shop.sms('u1')
    expect(() => shop.sms('u1')).toThrow(
      expect.objectContaining({
        name: 'DianaError',
        code: 'LIMITED',
        message: expect.stringMatching(/^rule "Shop.sms" refuses this call \(limit\): try again in \d+ ms$/),
        verdict: expect.objectContaining({ allowed: false, rule: 'Shop.sms', reason: 'limit' }),
      }),
    )
  })

  it('stacked @RateLimit decorators are decided together: a call that one refuses is charged by none', () => {
    const { Shop } = define(RateLimit, limiter)
    const shop = new Shop()
    expect([shop.add(1, 2), shop.add(2, 3)]).toEqual([3, 5])
    for (let i = 0; i < 9; i++) expect(outcomeOf(() => shop.add(1, 2))).toBe('LIMITED')
    expect([shop.add(1, 1), shop.add(5, 1), shop.add(6, 1)]).toEqual([2, 6, 7])
    // now the outer one is full, and has a fallback
    expect(shop.add(7, 1)).toBe(6)
  })

  it('@RateLimit releases a slot when the promise settles, and returns the fallback meanwhile', async () => {
    const { Shop } = define(RateLimit, limiter)
    const shop = new Shop()
    let resolve: (value: string) => void = () => {}
    const promise = new Promise<string>(settle => {
      resolve = settle
    })
    const first = shop.work(promise)
    expect(await shop.work(promise)).toBe('busy')
    resolve('done')
    expect(await first).toBe('done')
    await expect(shop.work(Promise.reject(new Error('no')))).rejects.toThrow('no')
    expect(await shop.work(Promise.resolve('again'))).toBe('again')
    expect(shop.open).toBe(3)
  })

  it('@RateLimit with countWhen counts only calls that throw', () => {
    const { Shop } = define(RateLimit, limiter)
    const shop = new Shop()
    const login = (user: string, password: string) => outcomeOf(() => shop.login(user, password))
    for (let i = 0; i < 5; i++) expect(login('u1', 'right')).toBe('welcome')
    expect([login('u1', 'a'), login('u1', 'b'), login('u1', 'right')]).toEqual(['wrong', 'wrong', 'LIMITED'])
    expect(login('u2', 'right')).toBe('welcome')
  })

  it('@RateLimit works on static methods, on extended classes, and twice on a class', () => {
    const { Statics, Branch, Stacked } = define(RateLimit, limiter)
    expect([outcomeOf(() => Statics.once()), outcomeOf(() => Statics.once())]).toEqual(['Statics', 'LIMITED'])
    const branch = new Branch()
    expect([outcomeOf(() => branch.sms('u1')), outcomeOf(() => branch.sms('u1'))]).toEqual(['sms to u1', 'LIMITED'])
    const stacked = new Stacked()
    expect([1, 2, 3].map(() => outcomeOf(() => stacked.go()))).toEqual(['gone', 'gone', 'LIMITED'])
    const ids = limiter.status().rules.map(({ id }) => id)
    expect(ids).toEqual(['Statics.once', 'Shop.sms', 'Stacked', 'inner'])
  })

  it('@RateLimit on two classes with one name creates two rules', () => {
    const [one, other] = [define(RateLimit, limiter), define(RateLimit, limiter)]
    expect([new one.Shop().sms('u1'), new other.Shop().sms('u1')]).toEqual(['sms to u1', 'sms to u1'])
    expect(limiter.status().rules.map(({ id }) => id)).toEqual(['Shop.sms', 'Shop.sms-2'])
  })

  it('a rule of the limiter with the same id replaces @RateLimit', async () => {
    const strict = await createLimiter({ clock, rules: [{ id: 'Shop.sms', match: 'none', limit: '0/m' }] })
    const { Shop } = define(RateLimit, strict)
    expect(outcomeOf(() => new Shop().sms('u1'))).toBe('LIMITED')
    await strict.close()
    expect(new Shop().sms('u1')).toBe('sms to u1')
  })

  it('rateLimitsOf returns the options of a class and a method', () => {
    const { Shop, Branch, Stacked } = define(RateLimit, limiter)
    const limits = (...of: Parameters<typeof rateLimitsOf>) => rateLimitsOf(...of).map(({ limit }) => limit)
    expect(limits(Shop, 'sms')).toEqual(['1/m'])
    expect(limits(Shop, Shop.prototype.add)).toEqual(['5/m', '3/m'])
    expect(limits(Shop, 'orders')).toEqual(['4/m'])
    expect(limits(Branch, 'orders')).toEqual(['4/m'])
    expect(limits(Stacked, 'go')).toEqual(['9/m', '2/m'])
    expect(limits(class {}, 'toString')).toEqual([])
  })

  it('@RateLimit on anything but a class or a method throws', () => {
    const decorate = RateLimit({ limit: '1/s' }) as unknown as (value: unknown, context: unknown) => void
    for (const kind of ['field', 'getter', 'setter', 'accessor']) {
      expect(() => decorate(undefined, { kind, name: 'x' })).toThrow('stands on a class or a method')
    }
    expect(() => decorate({}, 'field')).toThrow('stands on a class or a method')
    const byAccount = RateLimit({ limit: '1/s', by: 'account' }) as unknown as typeof decorate
    expect(() => byAccount(() => 1, { kind: 'method', name: 'x' })).toThrow('say key, a function of the arguments')
  })
})

describe('@RateLimit as an experimental decorator', () => {
  type Decorate = (target: object, name?: string, descriptor?: PropertyDescriptor) => PropertyDescriptor | undefined

  it('a method with @RateLimit by a dimension of HTTP throws if no guard applies it', () => {
    class Orders {
      list(): string {
        return 'orders'
      }
    }
    const descriptor = Object.getOwnPropertyDescriptor(Orders.prototype, 'list')!
    const decorate = RateLimit({ limit: '1/m', by: 'ip', limiter }) as unknown as Decorate
    Object.defineProperty(Orders.prototype, 'list', decorate(Orders.prototype, 'list', descriptor)!)
    expect(() => new Orders().list()).toThrow('import DianaModule.forRoot(limiter), whose guard obeys it')
  })
})

describe('@RateLimit without a call', () => {
  it('@RateLimit without parentheses throws where it is written, as either kind of decorator', () => {
    const uncalled = RateLimit as unknown as (...args: unknown[]) => unknown
    class Orders {}
    expect(() => uncalled(() => 1, { kind: 'method', name: 'x' })).toThrow("write @RateLimit({ limit: '5/s' })")
    expect(() => uncalled(Orders)).toThrow("write @RateLimit({ limit: '5/s' })")
    expect(() => uncalled(Orders.prototype, 'x', {})).toThrow('limit is missing')
    expect(() => uncalled()).toThrow("write @RateLimit({ limit: '5/s' })")
  })

  it('@RateLimit with a promise of a limiter throws where it is written', async () => {
    const promise = createLimiter({ rules: [] })
    expect(() => RateLimit({ limit: '1/s', limiter: promise as never })).toThrow('await it first')
    await (await promise).close()
  })
})
