import type { RateLimit as Decorator } from '../../packages/limiter/src/decorators/rate-limit.ts'
import type { Limiter } from '../../packages/limiter/src/limiter.ts'

/** Classes with annotations, compiled by the tests in the standard's way and in TypeScript's older one. */
export function defineAnnotated(RateLimit: typeof Decorator, limiter: Limiter) {
  @RateLimit({ limit: '4/m', limiter })
  class Shop {
    readonly name = 'shop'
    open = 0

    orders() {
      return `${this.name} orders`
    }

    bills() {
      return `${this.name} bills`
    }

    @RateLimit({ limit: '1/m', key: (user: string) => user, limiter })
    sms(user: string) {
      return `sms to ${user}`
    }

    @RateLimit({ limit: '5/m', limiter, fallback: (a: number, b: number) => a - b })
    @RateLimit({ limit: '3/m', limiter, key: (a: number) => a, cost: (_: number, b: number) => b })
    add(a: number, b: number) {
      return a + b
    }

    @RateLimit({ limit: 1, algorithm: 'concurrency', limiter, fallback: 'busy' })
    async work(job: Promise<string>) {
      this.open++
      return await job
    }

    @RateLimit({ limit: '2/m', countWhen: 'failed', by: 'account', key: (user: string) => user, limiter })
    login(_user: string, password: string) {
      if (password !== 'right') throw new Error('wrong')
      return 'welcome'
    }

    get total() {
      return 7
    }
  }

  class Branch extends Shop {
    override sms(user: string) {
      return super.sms(user)
    }
  }

  class Statics {
    readonly kind = 'statics'

    @RateLimit({ limit: '1/m', limiter })
    static once() {
      return Statics.name
    }
  }

  @RateLimit({ limit: '9/m', limiter })
  @RateLimit({ id: 'inner', limit: '2/m', limiter })
  class Stacked {
    go() {
      return 'gone'
    }
  }

  return { Shop, Branch, Statics, Stacked }
}
