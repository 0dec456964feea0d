import { StepRing } from '../../common/step-ring.ts'

/** Counts of the last minutes in steps, in place. */
export class Timeline {
  static readonly stepMs = 20_000
  static readonly steps = 30
  // half as large as doubles: there is one for each caller that is watched
  readonly #counts = new StepRing(new Uint32Array(Timeline.steps))

  add(at: number, count: number): void {
    this.#counts.add(stepAt(at), count)
  }

  /** The counts up to a moment, oldest first. */
  read(at: number): number[] {
    return this.#counts.read(stepAt(at), Timeline.steps)
  }

  sum(at: number): number {
    return this.#counts.sum(stepAt(at), Timeline.steps)
  }
}

function stepAt(at: number): number {
  return Math.floor(at / Timeline.stepMs)
}
