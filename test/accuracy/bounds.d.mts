/** When a call was judged, in microseconds. */
export interface Span {
  readonly earliest: number
  readonly latest: number
}

export interface Window {
  readonly count: number
  readonly periodUs: number
}

export function overPerWindow(spans: readonly Span[], limit: Window): number
export function overInAnyWindow(spans: readonly Span[], limit: Window): number
export function overBucket(spans: readonly Span[], limit: Window & { readonly burst: number }): number
export function overAtOnce(
  stays: readonly { readonly from: number; readonly to: number }[],
  limit: { readonly count: number },
): number
