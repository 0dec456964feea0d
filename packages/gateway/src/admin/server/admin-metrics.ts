import { Counter, type Registry } from 'prom-client'
import type { WrongTokens } from '../identity/guesses.ts'

/** The measurement of the admin API itself. */
export const wrongTokensName: { readonly name: string; readonly help: string } = {
  name: 'diana_admin_wrong_tokens_total',
  help: 'Wrong tokens that the admin API was sent: compared, or delayed (answered with 429, because too many had been wrong).',
}

/** Adds the measurement to a registry; it is read when the registry is. */
export function registerAdminMetrics(read: () => WrongTokens, registry: Registry): void {
  const counter: Counter<'result'> = new Counter({
    ...wrongTokensName,
    labelNames: ['result'],
    registers: [registry],
    collect() {
      counter.reset()
      for (const [result, value] of Object.entries(read())) counter.inc({ result }, value)
    },
  })
}
