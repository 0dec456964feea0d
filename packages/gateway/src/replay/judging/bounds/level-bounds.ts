import type { CompiledRule, Shape } from 'diana-limiter/gateway'
import { type Ceiling, createCeiling } from './ceiling.ts'
import { createFloor, type Floor, type Uncertainty } from './floor.ts'
import { SlotsInUse } from './slots-in-use.ts'

/** Bounds of what one limit of a rule can have refused. */
export interface LevelBounds {
  /** A call of a higher cost is always refused. */
  readonly largest: number
  readonly floor: Floor | undefined
  /** The ceiling of calls that no other limit can have refused. */
  readonly ceiling: Ceiling | undefined
  /** The ceiling of all calls. */
  readonly ceilingOfAll: Ceiling | undefined
  /** For limits on calls under way. */
  readonly slots: SlotsInUse | undefined
}

/** Returns the cost of a rule if all its calls cost the same: it is then judged by calls. */
export function fixedCostOf(rule: CompiledRule): number | undefined {
  if (rule.cost === undefined) return 1
  // a cost that is read from the call differs for calls that have none of the fields it is read from
  return rule.costInput !== undefined && typeof rule.costInput === 'number' ? rule.costInput : undefined
}

export function createLevels(rule: CompiledRule, uncertainty: Uncertainty): LevelBounds[] {
  const { widthUs, tickUs } = uncertainty
  const cost = fixedCostOf(rule)
  return rule.meters.map((meter, level): LevelBounds => {
    const none = { floor: undefined, ceiling: undefined, ceilingOfAll: undefined, slots: undefined }
    if (meter.held !== undefined) {
      const units = rule.limits[level]!.count
      const waitUs = rule.queueSize > 0 ? rule.queueTimeoutMs * 1000 : 0
      return { ...none, largest: units, slots: new SlotsInUse(units, waitUs, uncertainty) }
    }
    const envelope = meter.rate?.envelope
    const noFloor = createFloor(undefined, 0, uncertainty)
    if (envelope === undefined || (envelope.onlyForCost1 && cost !== 1)) {
      return { ...none, largest: Number.POSITIVE_INFINITY, floor: noFloor }
    }
    const scale = cost ?? 1
    const { ceiling, floor, largest } = envelope
    const wait = rule.queueSize > 0 ? meter.maxWaitUs : 0
    // a count that is cleared bounds nothing
    const scaled = rule.resetWhen || rule.blockClears ? undefined : ceiling && scaledBy(ceiling, scale)
    const create = (): Ceiling | undefined => scaled && createCeiling(scaled, widthUs + wait, tickUs)
    return {
      largest,
      floor: createFloor(floor && scaledBy(floor, scale), wait, uncertainty),
      ceiling: create(),
      ceilingOfAll: create(),
      slots: undefined,
    }
  })
}

/** Converts a shape to calls that cost `cost` units each. */
function scaledBy<S extends Shape>(shape: S, cost: number): S {
  if (cost <= 1) return shape
  if (shape.kind === 'bucket') return { ...shape, units: shape.units / cost, perUs: shape.perUs / cost }
  return { ...shape, units: Math.floor(shape.units / cost) }
}
