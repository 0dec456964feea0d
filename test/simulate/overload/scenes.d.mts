import type { Meter } from '../../../packages/limiter/src/algorithms/algorithm.ts'

type Service = object
export const services: Readonly<
  Record<'fixed pool' | 'noisy' | 'large pool' | 'CPU-bound' | 'slow dependency', Service>
>
export function stepToThree(
  meter: Meter,
  service: Service,
  seed: number,
  seconds?: number,
): { goodput: number; p99Times: number; onsetTimes: number; run: { limits: readonly unknown[] } }
export function capacityStep(
  meter: Meter,
  service: Service,
  seed: number,
  factor: number,
): { knee: number; median: number; isNear: boolean; firstMs: number }
export function steady(
  meter: Meter,
  service: Service,
  seed: number,
  seconds?: number,
): { refused: number; offered: number }
export function critical(meter: Meter, service: Service, seed: number, seconds?: number): { admitted: number }
export function disturbed(
  meter: Meter,
  seed: number,
  how: { abort?: { share: number; afterMs: number }; failing?: number },
): { median: number; knee: number }
