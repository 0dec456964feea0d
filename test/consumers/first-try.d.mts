import type { Consumer } from './consumer.mjs'

export interface Environment {
  readonly name: string
  readonly long?: boolean
}

export const environments: readonly Environment[]
export function tryFirst(environment: Environment, consumer: Consumer, modules: string): Promise<string>
export function tableOf(results: readonly { readonly name: string; readonly wrong: string }[]): string
