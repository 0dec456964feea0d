import type { CompiledCost } from './compile-costs.ts'

/** True if the body of a request or the answer says what a call costs by a rule. */
export function isMeasured({ measured }: { readonly measured?: CompiledCost | undefined }): boolean {
  return measured !== undefined && (measured.estimate !== undefined || measured.settle !== undefined)
}
