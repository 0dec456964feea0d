export type { CatchUp, LevelCatchUp } from './catch-up.ts'
export type { Charge } from './charge.ts'
export { catchUpState, decideCharges, idleAt, refundCharge, resetState, stateSize } from './decide-charges.ts'
export { leaseTermsOf } from './leases/lease-terms.ts'
export { type Held, Reservations } from './leases/reservations.ts'
export type { Membership, MembershipRegistry, SignOfLife } from './membership/registry.ts'
export type { ShareClaim, ShareGrant } from './membership/shares.ts'
export type { LevelState } from './memory/delay-beside.ts'
export type {
  Answered,
  AnswerListener,
  FleetCharge,
  FleetCounter,
  FleetRefund,
  FleetRule,
  LeaseAnswer,
  LeaseRequest,
  LeaseTerms,
  SharedStore,
  StoreWatcher,
  Use,
} from './store.ts'
