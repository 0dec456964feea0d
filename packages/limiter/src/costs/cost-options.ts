/** `reserve` as a rule has it: plain text and numbers, since documents are copied between threads. */
export interface ReserveSettings {
  /** `json:max_tokens`, `header:x-max`, `bytes/4`, `500`, or the name of a usage format. */
  readonly from: readonly string[]
  readonly plus: readonly string[]
  /** `json:n`, `header:x-copies` or `3`; what is known to multiply `from` need not be named. */
  readonly times?: readonly string[] | undefined
  readonly typical?: number | undefined
  readonly min: number
  readonly max: number
}

/** `settle` as a rule has it. */
export interface SettleSettings {
  /** `json:usage.total_tokens`, `header:x-tokens-used`, or the name of a usage format. */
  readonly from: readonly string[]
  readonly max: number
}

/** `weights` as a rule has it. */
export interface WeightOptions {
  readonly input: number
  readonly cached: number
  readonly output: number
}

/** The words of `cost` that read requests and answers. */
export interface MeasuredCost {
  readonly reserve?: ReserveSettings | undefined
  readonly settle?: SettleSettings | undefined
  readonly weights?: WeightOptions | undefined
  /** The counted unit, as headers name it; left out, tokens if the usage is one that rules know by name. */
  readonly unit?: string | undefined
}
