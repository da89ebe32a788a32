export { ManualClock as FakeClock, settle } from "../../src/testing/manual-clock.ts";
