import type { Answer, Rule, WhenFull, WhenStoreDown } from './rule.ts'

type OneOrList<T> = T | readonly T[]

/** The words of a rule file, given in code. */
export interface DocumentOptions {
  readonly rules?: readonly RuleOptions[] | undefined
  readonly identify?: Readonly<Record<string, OneOrList<string>>> | undefined
  readonly trustProxy?: number | OneOrList<string> | undefined
  readonly store?: { readonly redis: OneOrList<string>; readonly timeout?: string | undefined } | undefined
  readonly remote?: Readonly<Record<string, unknown>> | undefined
  readonly answer?: Partial<Answer> | undefined
}

/** The words of a rule, given in code; the words of its algorithm stand among them. */
export interface RuleOptions {
  readonly id: string
  readonly enabled?: boolean | undefined
  readonly match?:
    | 'none'
    | {
        readonly path?: OneOrList<string> | undefined
        readonly method?: OneOrList<string> | undefined
        readonly host?: OneOrList<string> | undefined
        readonly header?: Readonly<Record<string, OneOrList<string>>> | undefined
      }
  readonly by?: OneOrList<string> | undefined
  readonly limit: OneOrList<string | number>
  readonly algorithm?: string | undefined
  readonly count?: Rule['count'] | undefined
  readonly whenFull?: WhenFull | undefined
  readonly queue?: { readonly size?: number | undefined; readonly timeout?: string | undefined } | undefined
  readonly whenStoreDown?: WhenStoreDown | undefined
  readonly answer?: Partial<Answer> | undefined
  readonly [word: string]: unknown
}
